#!/usr/bin/env python3
"""Small questions that svc asks: is that service really answering, which port is free? Standard library only."""
import socket
import struct
import sys
import urllib.error
import urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def port_is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def kafka(port):
    """Metadata v4, asking for no topic: the answer must name a broker and the controller."""
    client = b"svc-probe"
    body = struct.pack(">hhih", 3, 4, 7, len(client)) + client + struct.pack(">ib", 0, 0)
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        s.settimeout(10)
        s.sendall(struct.pack(">i", len(body)) + body)
        while len(answer) < 4 or len(answer) < 4 + struct.unpack(">i", answer[:4])[0]:
            part = s.recv(65536)
            if not part:
                return False
            answer += part
    correlation, _throttle, brokers = struct.unpack(">iii", answer[4:16])
    if correlation != 7 or brokers < 1:
        return False

    def after_text(pos):  # a nullable string: two bytes of length, -1 for null
        return pos + 2 + max(struct.unpack(">h", answer[pos:pos + 2])[0], 0)
    pos = 16
    for _ in range(brokers):
        pos = after_text(after_text(pos + 4) + 4)  # id, host, port, rack
    pos = after_text(pos)  # id of the cluster
    return struct.unpack(">i", answer[pos:pos + 4])[0] >= 0


def zookeeper(port):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        s.settimeout(10)
        s.sendall(b"srvr")
        return b"Mode: standalone" in s.makefile("rb").read()


def http(url, *codes):
    """Does the URL answer with one of the codes?"""
    try:
        with urllib.request.urlopen(url, timeout=10) as r:
            return str(r.status) in codes
    except urllib.error.HTTPError as e:
        return str(e.code) in codes


def put(url, body):
    request = urllib.request.Request(url, data=body.encode(), method="PUT", headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as r:
        return r.status < 300


def main(what, *args):
    if what == "freeport":
        print(free_port())
        return 0
    question = {"isfree": lambda: port_is_free(int(args[0])), "kafka": lambda: kafka(int(args[0])), "zookeeper": lambda: zookeeper(int(args[0])),
                "http": lambda: http(*args), "put": lambda: put(*args)}[what]
    try:
        return 0 if question() else 1
    except (OSError, struct.error, ValueError):
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
