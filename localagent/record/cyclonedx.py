"""A software bill of materials in CycloneDX 1.6 JSON: what localagent is made of, and the model that it runs.

Pure: it lays out what it is told, and the serial number is made of that: the same things at the same time are the same
bill. Not promised: that a package's statement about its own licence is true, or that the
bill names what a third-party packager linked in without saying so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import NAMESPACE_URL, UUID, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

VERSION = SchemaVersion.V1_6


@dataclass(frozen=True, kw_only=True, slots=True)
class SbomPart:
    """A package. `locked` are the SHA-256 of the files that a lock accepts; `inside` libraries its packager put in.

    `file` is the wheel that a kit carries it in, which `locked` is the SHA-256 of; `carried` if it is not installed.
    """

    name: str
    version: str
    licence: str = ""
    packager: str = ""
    description: str = ""
    locked: tuple[str, ...] = ()
    record: str = ""
    needs: tuple[str, ...] = ()
    inside: tuple[tuple[str, str, str], ...] = ()
    file: str = ""
    carried: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Carried:
    """A file that a kit carries and that nothing is installed of."""

    file: str
    sha256: str
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SbomModel:
    """A model: its file's SHA-256, licence, card, and every further statement as (name, value)."""

    name: str
    version: str
    sha256: str
    licence: str
    card: str
    statements: Mapping[str, str] = field(default_factory=dict)


def bill(
    own: SbomPart,
    parts: Iterable[SbomPart],
    models: Iterable[SbomModel],
    *,
    when: datetime,
    files: Iterable[Carried] = (),
    about: Mapping[str, str] | None = None,
) -> str:
    """The bill as JSON text; `when` must say its time zone. `about` is said of the whole."""
    licences = LicenseFactory()
    root = _package(own, licences, ComponentType.APPLICATION)
    packages = list(parts)
    found = {part.name: _package(part, licences, ComponentType.LIBRARY) for part in packages}
    weights = [_model(model, licences) for model in models]
    document = Bom(
        serial_number=UUID(int=0),
        components=[*found.values(), *weights, *map(_file, files)],
        metadata=BomMetaData(
            component=root, timestamp=when.replace(microsecond=0), properties=_properties(about or {})
        ),
    )
    document.register_dependency(root, [*(found[name] for name in own.needs if name in found), *weights])
    for part in packages:
        document.register_dependency(found[part.name], [found[name] for name in part.needs if name in found])
    document.serial_number = uuid5(NAMESPACE_URL, _written(document))
    return _written(document)


def _written(document: Bom) -> str:
    return make_outputter(document, OutputFormat.JSON, VERSION).output_as_string(indent=1) + "\n"


def _package(part: SbomPart, licences: LicenseFactory, kind: ComponentType) -> Component:
    address = PackageURL("pypi", None, part.name, part.version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(part.file or address.to_string()),
        comment=f"the {'file of the kit' if part.file else 'files that the lock accepts'}, by SHA-256",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in sorted(part.locked)],
    )
    within = ComponentScope.EXCLUDED if part.carried else ComponentScope.REQUIRED
    return Component(
        type=kind,
        bom_ref=address.to_string(),
        name=part.name,
        version=part.version,
        description=part.description or None,
        scope=within if part.file else None,
        supplier=OrganizationalEntity(name=part.packager) if part.packager else None,
        licenses=_licences(part.licence, licences),
        purl=address,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=part.locked[0])] if len(part.locked) == 1 else None,
        external_references=[files] if part.locked else None,
        properties=_properties({"record-sha256": part.record}),
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


def _file(carried: Carried) -> Component:
    return Component(
        type=ComponentType.FILE,
        bom_ref=f"file:{carried.file}",
        name=carried.file,
        description=carried.what,
        scope=ComponentScope.EXCLUDED,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=carried.sha256)],
    )


def _model(model: SbomModel, licences: LicenseFactory) -> Component:
    card = ExternalReference(type=ExternalReferenceType.MODEL_CARD, url=XsUri(model.card))
    return Component(
        type=ComponentType.MACHINE_LEARNING_MODEL,
        bom_ref=f"model:{model.name}",
        name=model.name,
        version=model.version or None,
        licenses=_licences(model.licence, licences),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=model.sha256)],
        external_references=[card] if model.card else None,
        properties=_properties(model.statements),
    )


def _properties(statements: Mapping[str, str]) -> list[Property]:
    return [Property(name=f"localagent:{key}", value=value) for key, value in statements.items() if value]


def _licences(stated: str, licences: LicenseFactory) -> list[LicenseExpression | DisjunctiveLicense] | None:
    """An SPDX expression or identifier where it is one, the plain words otherwise."""
    return [licences.make_from_string(stated)] if stated else None
