"""Metrics for Prometheus."""

from prometheus_client.parser import text_string_to_metric_families

from support.serving import QUERY


def samples(served):
    """Every sample, by its name and labels."""
    reply = served.ask("GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=")
    found = {}
    for family in text_string_to_metric_families(reply.body.decode()):
        for each in family.samples:
            found[each.name, tuple(sorted(each.labels.items()))] = each.value
    return found


def test_requests_jobs_and_cells_are_counted(served):
    before = samples(served)
    served.post("/jobs?database=tiny&wait=30", QUERY, **{"Content-Type": "text/plain"})
    served.get("/jobs/nothing")
    served.get("/made/up/path")
    after = samples(served)

    def grown(name, **labels):
        key = name, tuple(sorted(labels.items()))
        return after[key] - before.get(key, 0)

    assert grown("swsearch_requests_total", method="POST", route="/api/v1/jobs", status="202") == 1
    assert grown("swsearch_requests_total", method="GET", route="/api/v1/jobs/{identifier}", status="404") == 1
    assert grown("swsearch_requests_total", method="GET", route="other", status="404") == 1
    assert grown("swsearch_request_seconds_count", route="/api/v1/jobs") == 1
    assert grown("swsearch_jobs", state="done") == 1
    assert grown("swsearch_cells_total") > 0
    assert after["swsearch_queue_length", ()] == 0
    assert after["swsearch_database_ready", (("database", "tiny"),)] == 1
    assert after["process_open_fds", ()] > 0


def test_methods_that_clients_make_up_are_one(served):
    for method in ("FIRST", "SECOND"):
        served.ask(method, "/api/v1/jobs")
    names = {dict(labels).get("method") for _, labels in samples(served)}
    assert "other" in names
    assert not names & {"FIRST", "SECOND"}
