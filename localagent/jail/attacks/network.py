"""Attacks that reach for a network, the host's own services, or kernel protocols beside the ordinary ones.

What is connected to are listeners that the host's side opened on its own loopback; nothing is ever sent further.
"""

import _socket
import errno
import socket

from ..boundaries import Wall
from .attack import AttackStopped, Bait, Category, Lacks, Register, Witness, failed
from .system_calls import by_kernel, call

attack = Register(Category.NETWORK)
WAIT_SECONDS = 3.0
TEST_NET = "203.0.113.7"  # nobody's (RFC 5737); a UDP socket that is only connected sends nothing


def connect(family: int, kind: int, address: object) -> str:
    """OSError unless something answers at `address`."""
    with socket.socket(family, kind) as sock:
        sock.settimeout(WAIT_SECONDS)
        sock.connect(address)  # type: ignore[arg-type]
        sock.sendall(b"secret")
        return "connected to %s" % (address,)


def made(family: int, kind: int, protocol: int, what: str) -> str:
    """OSError unless such a socket can be made."""
    try:
        socket.socket(family, kind, protocol).close()
    except OSError as fault:
        by_kernel(fault, what)
    return "made a socket: " + what


@attack("TCP to the host's loopback", Wall.NETWORK, "ECONNREFUSED", witness=Witness.LISTENER)
def tcp(bait: Bait) -> str:
    """Connect to a service on 127.0.0.1 of the host."""
    return connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", bait.port4))


@attack("TCP to the host's IPv6 loopback", Wall.NETWORK, "ECONNREFUSED", "EADDRNOTAVAIL", witness=Witness.LISTENER)
def tcp6(bait: Bait) -> str:
    """Connect to a service on ::1 of the host."""
    if not bait.port6:
        raise Lacks("the machine has no IPv6 loopback")
    return connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", bait.port6))


@attack("a DNS query with a secret in it", Wall.NETWORK, "ECONNREFUSED", witness=Witness.LISTENER)
def dns(bait: Bait) -> str:
    """Send a name-server query that carries data to a resolver on the host, by UDP."""
    query = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\x06secret\x07attacks\x07example\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.5)
        sock.connect(("127.0.0.1", bait.port_udp))
        sock.send(query)
        try:
            return "got %d bytes" % len(sock.recv(512))
        except TimeoutError:
            raise failed(errno.ETIMEDOUT) from None


@attack("a way to other machines", Wall.NETWORK, "ENETUNREACH")
def route(bait: Bait) -> str:
    """Ask the kernel for an IPv4 way to another machine (nothing is sent)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect((TEST_NET, 53))
        return "there is a way from %s" % sock.getsockname()[0]


@attack("an IPv6 way to other machines", Wall.NETWORK, "ENETUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT")
def route6(bait: Bait) -> str:
    """Ask the kernel for an IPv6 way to another machine (nothing is sent)."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        sock.connect(("2001:db8::7", 53))
        return "there is a way from %s" % sock.getsockname()[0]


@attack("a broadcast", Wall.NETWORK, "ENETUNREACH")
def broadcast(bait: Bait) -> str:
    """Ask the kernel for a way to every machine of the local network (nothing is sent)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.connect(("255.255.255.255", 9))
        return "there is a way"


@attack("an abstract Unix socket", Wall.NETWORK, "ECONNREFUSED", witness=Witness.LISTENER)
def abstract(bait: Bait) -> str:
    """Connect to an abstract Unix socket of the host, as desktop services have."""
    return connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + bait.abstract)


@attack("a Unix socket by its path", Wall.FILES, "ENOENT", witness=Witness.LISTENER, shown="ro")
def unix(bait: Bait) -> str:
    """Connect to a Unix socket of the host by its path, as container services have."""
    return connect(socket.AF_UNIX, socket.SOCK_STREAM, bait.unix_path)


@attack("sockets that listen", Wall.NETWORK, "no-listener", opens=(Wall.NETWORK,))
def listening(bait: Bait) -> str:
    """List the sockets that listen in this network, in /proc/net, for one to talk to."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split()[1] for line in file if line.split()[3:4] == ["0A"]]
    if not rows:
        raise AttackStopped("no-listener")
    return "%d listen" % len(rows)


@attack("interfaces of the host", Wall.NETWORK, "loopback-only", opens=(Wall.NETWORK,))
def interfaces(bait: Bait) -> str:
    """List network interfaces; none but the jail's own loopback may be seen."""
    if not bait.interfaces:
        raise Lacks("the machine has no network interface of its own")
    with open("/proc/net/dev", encoding="ascii") as file:
        names = {line.split(":")[0].strip() for line in file if ":" in line}
    if not names & set(bait.interfaces):
        raise AttackStopped("loopback-only")
    return "sees " + " ".join(sorted(names))


@attack("netlink", Wall.SECCOMP, "EPERM")
def netlink(bait: Bait) -> str:
    """Talk to the kernel's network configuration."""
    return made(16, socket.SOCK_RAW, 0, "netlink")


@attack("netlink to netfilter", Wall.SECCOMP, "EPERM")
def netfilter(bait: Bait) -> str:
    """Reach the packet filter's configuration, where many kernel faults were."""
    return made(16, socket.SOCK_RAW, 12, "netlink netfilter")


@attack("vsock", Wall.SECCOMP, "EPERM")
def vsock(bait: Bait) -> str:
    """Talk to the hypervisor."""
    return made(40, socket.SOCK_STREAM, 0, "vsock")


@attack("packet sockets", Wall.SECCOMP, "EPERM", opens=(Wall.SECCOMP, Wall.CAPABILITIES))
def packet(bait: Bait) -> str:
    """Read and write raw frames of an interface."""
    return made(17, socket.SOCK_RAW, 0, "packet")


@attack("raw IP sockets", Wall.CAPABILITIES, "EPERM")
def raw(bait: Bait) -> str:
    """Write IP packets by hand."""
    return made(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP, "raw IP")


@attack("the kernel's cryptography", Wall.SECCOMP, "EPERM")
def alg(bait: Bait) -> str:
    """Make a socket of the kernel's cryptographic interface (AF_ALG)."""
    return made(38, socket.SOCK_SEQPACKET, 0, "AF_ALG")


@attack(
    "CAN and Bluetooth", Wall.SECCOMP, "EPERM", open_reason="succeeded|EAFNOSUPPORT|EPROTONOSUPPORT|ESOCKTNOSUPPORT"
)
def buses(bait: Bait) -> str:
    """Make sockets of the vehicle bus and of Bluetooth."""
    for family, kind in ((29, socket.SOCK_RAW), (31, socket.SOCK_SEQPACKET)):
        socket.socket(family, kind, 1).close()
    return "made them"


@attack("rare protocol families", Wall.SECCOMP, "EPERM", open_reason="succeeded|kernel-answers")
def rare(bait: Bait) -> str:
    """Make a socket of each family that loads its module on demand: TIPC, RxRPC, KCM, QRTR, SMC, XDP, MCTP, IPX ..."""
    reasons = set()
    for family in sorted(set(range(3, 46)) - {socket.AF_INET6}):
        try:
            socket.socket(family, socket.SOCK_DGRAM).close()
        except OSError as fault:
            reasons.add(fault.errno)
        else:
            return "made a socket of family %d" % family
    if reasons != {errno.EPERM}:
        raise AttackStopped("kernel-answers")
    raise failed(errno.EPERM)


@attack(
    "a pair of TIPC sockets",
    Wall.SECCOMP,
    "EPERM",
    open_reason="succeeded|EAFNOSUPPORT|EPROTONOSUPPORT|ESOCKTNOSUPPORT",
)
def tipc_pair(bait: Bait) -> str:
    """Ask for a rare protocol family through socketpair instead of socket."""
    for one in _socket.socketpair(30, socket.SOCK_SEQPACKET, 0):
        one.close()
    return "made a pair of family 30"


@attack("System V shared memory", Wall.SECCOMP, "EPERM")
def shmget(bait: Bait) -> str:
    """Make a segment of System V shared memory, which no size of a tmpfs bounds."""
    try:
        return "made segment %d" % call("shmget", 0, 4096, 0o1600)
    except OSError as fault:
        by_kernel(fault, "System V shared memory")
        raise


@attack("the host's shared memory", Wall.IPC, "own-ipc")
def segments(bait: Bait) -> str:
    """Look for a System V segment of the host in /proc/sysvipc."""
    if bait.shared_memory < 0:
        raise Lacks("the kernel has no System V shared memory")
    with open("/proc/sysvipc/shm", encoding="ascii") as file:
        ids = {int(line.split()[1]) for line in list(file)[1:]}
    if bait.shared_memory not in ids:
        raise AttackStopped("own-ipc")
    return "segment %d is in sight" % bait.shared_memory
