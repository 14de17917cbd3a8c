"""Configurations of the gateways."""

from skewscope.lab.bed.gateways import configuration

BACKENDS = [["10.0.0.1", 8000], ["10.0.0.2", 8000]]


def test_nginx_gets_its_buffers_and_all_backends():
    text = configuration({"buffering": "on", "buffer_bytes": 16384}, BACKENDS, 8080, "/x")
    assert "proxy_buffering on;" in text
    assert "server 10.0.0.1:8000; server 10.0.0.2:8000;" in text
    assert "listen 8080;" in text
    assert text.count("{") == text.count("}")


def test_haproxy_gets_its_ceiling():
    text = configuration({"kind": "haproxy", "server_connections": 4}, BACKENDS, 8080, "/x")
    assert "server s0 10.0.0.1:8000 maxconn 4" in text
    assert "bind *:8080" in text
    assert (
        "maxconn" not in configuration({"kind": "haproxy"}, BACKENDS, 8080, "/x").split("backend engine\n")[1]
    )
