"""Scraping over the loopback interface: answers, failures, limits, and the replay of what was kept."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from skewscope.core.directory import Directory
from skewscope.core.tables import Heard
from skewscope.sources import scrape
from skewscope.sources.documents import Document
from skewscope.sources.inbox import Inbox
from skewscope.sources.scrape import ScrapeError, Scraper, fetch

BODY = b'# TYPE x gauge\nvllm:num_requests_running{model_name="m"} 3\n'


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/slow":
            for _ in range(100):
                try:
                    self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" if _ == 0 else b"x")
                    self.wfile.flush()
                except OSError:
                    return
                time.sleep(0.05)
            return
        status = {"/metrics": 200, "/large": 200, "/moved": 302}.get(self.path, 503)
        body = b"#" * 5000 if self.path == "/large" else BODY
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/metrics")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


@pytest.fixture(scope="module")
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield f"127.0.0.1:{made.server_address[1]}"
    made.shutdown()
    made.server_close()
    thread.join()


def test_an_answer(server):
    assert fetch(f"http://{server}/metrics") == BODY


def test_what_goes_wrong_is_one_line(server, monkeypatch):
    for url, why in (
        (f"http://{server}/none", "HTTP status 503"),
        (f"http://{server}/moved", "HTTP status 302"),
        ("http://127.0.0.1:9/metrics", "refused"),
        ("file:///etc/hostname", "only http"),
        ("http://[::1/metrics", "."),
        ("http://exa mple/metrics", "."),
    ):
        with pytest.raises(ScrapeError, match=why):
            fetch(url, 2.0)
    monkeypatch.setattr(scrape, "MAX_BYTES", 1000)
    with pytest.raises(ScrapeError, match="more than"):
        fetch(f"http://{server}/large")


def test_an_endless_answer_ends(server):
    with pytest.raises(ScrapeError, match=r"takes longer|timed out"):
        fetch(f"http://{server}/slow", 0.3)


def test_live_and_replay_give_the_same(server, tmp_path):
    directory = Directory()
    inbox = Inbox(directory, spool=tmp_path)
    scraper = Scraper(server, inbox, every_s=7.0)
    assert scraper.url == f"http://{server}/metrics"
    assert scraper.once() == 7.0
    rounds = iter([False, True])
    batches = list(inbox.batches(lambda: next(rounds)))
    assert all(isinstance(b, Heard) for b in batches if not b)
    (live,) = [b["metrics"] for b in batches if b]
    (file,) = tmp_path.rglob("*.prom")
    again = Directory()
    document = Document(file, again)
    (replayed,) = [b["metrics"] for b in document.batches() if b]
    for column in ("ts_ns", "value", "kind", "line"):
        assert live[column].tolist() == replayed[column].tolist()
    assert directory.entities[1] == again.entities[1] == server


def test_failures_wait_longer_each_time_and_an_answer_ends_that(server):
    inbox = Inbox(Directory())
    scraper = Scraper(f"http://{server}/none", inbox, every_s=10.0)
    assert [scraper.once() for _ in range(4)] == [20.0, 40.0, 60.0, 60.0]
    assert inbox.notes == {f"{server}: HTTP status 503": 4}
    scraper.url = f"http://{server}/metrics"
    assert scraper.once() == 10.0


def test_the_thread_scrapes_until_it_is_closed(server):
    inbox = Inbox(Directory())
    scraper = Scraper(server, inbox, every_s=0.01)
    scraper.start()
    begin = time.monotonic()
    for _ in inbox.batches(lambda: inbox.rows >= 3 or time.monotonic() - begin > 20):
        pass
    scraper.close()
    assert inbox.rows >= 3
    assert scraper.answers >= 3
