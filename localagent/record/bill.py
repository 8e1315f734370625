"""A software bill of materials in CycloneDX 1.6 JSON: what localagent is made of, and the model that it runs.

Pure: it lays out what it is told. Not promised: that a package's statement about its own licence is true, or that the
bill names what a third-party packager linked in without saying so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

VERSION = SchemaVersion.V1_6


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A package. `locked` are the SHA-256 of the files that a lock accepts; `inside` libraries its packager put in."""

    name: str
    version: str
    licence: str = ""
    packager: str = ""
    description: str = ""
    locked: tuple[str, ...] = ()
    record: str = ""
    needs: tuple[str, ...] = ()
    inside: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """A model: its file's SHA-256, licence, card, and every further statement as (name, value)."""

    name: str
    version: str
    sha256: str
    licence: str
    card: str
    statements: Mapping[str, str] = field(default_factory=dict)


def bill(own: Part, parts: Iterable[Part], models: Iterable[Weights], *, when: datetime) -> str:
    """The bill as JSON text; `when` must say its time zone."""
    licences = LicenseFactory()
    root = _package(own, licences, ComponentType.APPLICATION)
    found = {part.name: _package(part, licences, ComponentType.LIBRARY) for part in parts}
    weights = [_model(model, licences) for model in models]
    document = Bom(
        components=[*found.values(), *weights],
        metadata=BomMetaData(component=root, timestamp=when.replace(microsecond=0)),
    )
    document.register_dependency(root, [*(found[name] for name in own.needs if name in found), *weights])
    for part in parts:
        document.register_dependency(found[part.name], [found[name] for name in part.needs if name in found])
    return make_outputter(document, OutputFormat.JSON, VERSION).output_as_string(indent=1) + "\n"


def _package(part: Part, licences: LicenseFactory, kind: ComponentType) -> Component:
    address = PackageURL("pypi", None, part.name, part.version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(address.to_string()),
        comment="the files that the lock accepts, by SHA-256",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in sorted(part.locked)],
    )
    return Component(
        type=kind,
        bom_ref=address.to_string(),
        name=part.name,
        version=part.version,
        description=part.description or None,
        supplier=OrganizationalEntity(name=part.packager) if part.packager else None,
        licenses=_licences(part.licence, licences),
        purl=address,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=part.locked[0])] if len(part.locked) == 1 else None,
        external_references=[files] if part.locked else None,
        properties=[Property(name="localagent:record-sha256", value=part.record)] if part.record else None,
        components=[
            Component(
                type=ComponentType.LIBRARY,
                bom_ref=f"{address.to_string()}#{number}",
                name=name,
                version=version or None,
                purl=PackageURL.from_string(purl) if purl else None,
            )
            for number, (name, version, purl) in enumerate(part.inside)
        ],
    )


def _model(model: Weights, licences: LicenseFactory) -> Component:
    card = ExternalReference(type=ExternalReferenceType.MODEL_CARD, url=XsUri(model.card))
    return Component(
        type=ComponentType.MACHINE_LEARNING_MODEL,
        bom_ref=f"model:{model.name}",
        name=model.name,
        version=model.version or None,
        licenses=_licences(model.licence, licences),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=model.sha256)],
        external_references=[card] if model.card else None,
        properties=[
            Property(name=f"localagent:{key}", value=value) for key, value in model.statements.items() if value
        ],
    )


def _licences(stated: str, licences: LicenseFactory) -> list[LicenseExpression | DisjunctiveLicense] | None:
    """An SPDX expression or identifier where it is one, the plain words otherwise."""
    return [licences.make_from_string(stated)] if stated else None
