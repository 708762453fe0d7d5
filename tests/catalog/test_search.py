"""Searching; the pitfalls are those met when the engine was chosen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest

from tests.catalog.tools import a_tool
from toolyard.catalog import Catalog, Hit, Server, ToolSettings
from toolyard.catalog.search import counts as counting
from toolyard.catalog.search.clauses import clauses
from toolyard.catalog.search.engine import Bm25fSearchers
from toolyard.catalog.search.terms import plain_stem, stemmer, words
from toolyard.core.schema import Schema
from toolyard.core.tool import Tool


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    catalog = Catalog()
    catalog.publish(
        "slack",
        [
            a_tool("slack:conversations_create", "Initiates a channel. Public or private.", tags=("channels",)),
            a_tool("slack:conversations_list", "Lists all channels in a team.", arguments={"cursor": "Page to read."}),
            a_tool("slack:chatPostMessage", "Sends a message to a channel."),
            a_tool("slack:users_info", "Gets information about a user."),
        ],
    )
    catalog.publish(
        "aws_s3",
        [
            a_tool("aws_s3:PutObject", "Adds an object to a bucket."),
            a_tool("aws_s3:ListBuckets", "Returns a list of all buckets."),
            a_tool("aws_s3:DeleteBucket", "Deletes the bucket. All objects must be gone first."),
        ],
    )
    catalog.publish(
        "github",
        [
            a_tool("github:listRepoIssues", "List issues in a repository.", cluster="GitHub REST API"),
            a_tool("github:create_an_issue", "Create an issue.", cluster="GitHub REST API"),
            a_tool("github:repositories_get", "Get a repository.", cluster="GitHub REST API"),
        ],
    )
    catalog.publish("files", [a_tool("files:about", "Says what this is."), a_tool("files:search", "Finds a file.")])
    return catalog


def found(hits: list[Hit]) -> list[str]:
    return [hit.entry.id for hit in hits]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("create channel slack", "slack:conversations_create"),
        ("Post a message", "slack:chatPostMessage"),
        ("repo issues", "github:listRepoIssues"),
        ("open a new issue", "github:create_an_issue"),
        ("put an object into S3", "aws_s3:PutObject"),
        ("list my buckets", "aws_s3:ListBuckets"),
        ("remove the bucket", "aws_s3:DeleteBucket"),
        ("slack:users_info", "slack:users_info"),
        ("aws_s3_PutObject_action", "aws_s3:PutObject"),
        ("cursor", "slack:conversations_list"),
        ("about", "files:about"),
    ],
)
def test_a_request_finds_its_tool_first(catalog: Catalog, query: str, best: str) -> None:
    assert found(catalog.snapshot.search(query))[0] == best


@pytest.mark.parametrize("query", ["", "   ", "?!… --", "zzzz qqqq", "\0", "\ud800", "的"])
def test_a_request_without_a_known_word_finds_nothing(catalog: Catalog, query: str) -> None:
    assert catalog.snapshot.search(query) == []
    assert catalog.snapshot.search(query, prefixes=True) == []


@pytest.mark.parametrize("limit", [-1, 0])
def test_no_hits_are_given_where_none_are_wanted(catalog: Catalog, limit: int) -> None:
    assert catalog.snapshot.search("create a channel in slack and list s3 buckets", limit=limit) == []


def test_an_empty_catalog_finds_nothing() -> None:
    snapshot = Catalog().snapshot
    assert snapshot.search("anything") == []
    assert snapshot.search("a", prefixes=True) == []


def test_a_megabyte_of_request_is_cut_and_answered(catalog: Catalog) -> None:
    assert found(catalog.snapshot.search("bucket, object and " * 50_000, limit=3)) != []
    assert catalog.snapshot.search(" " * 2_000 + "bucket") == []


def test_every_hit_says_what_matched(catalog: Catalog) -> None:
    hit = catalog.snapshot.search("create a channel in slack")[0]
    assert hit.entry.id == "slack:conversations_create"
    assert hit.reason.endswith("the request names slack")
    assert {part.split()[0] for part in hit.reason.split("; ")} >= {"name", "app", "summary"}
    assert "(create)" in hit.reason
    assert "channel" in hit.reason


def test_hits_without_apps_or_clauses_come_in_the_order_of_their_scores(catalog: Catalog) -> None:
    scores = [hit.score for hit in catalog.snapshot.search("list all channels")]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0


def test_equal_scores_come_in_the_order_of_the_catalog_and_the_limit_cuts_there() -> None:
    catalog = Catalog()
    catalog.publish("same", [a_tool(f"same:{letter}", "Twin of the others.") for letter in "dbca"])
    assert found(catalog.snapshot.search("twin")) == ["same:a", "same:b", "same:c", "same:d"]
    assert found(catalog.snapshot.search("twin", limit=2)) == ["same:a", "same:b"]


def test_a_view_restricts_before_ranking(catalog: Catalog) -> None:
    view = catalog.snapshot.view(Server("one", tools=("slack:*", "!*_create")))
    assert found(catalog.snapshot.search("create channel", limit=1)) == ["slack:conversations_create"]
    assert found(catalog.snapshot.search("create channel", within=view, limit=1)) == ["slack:chatPostMessage"]
    everything = found(catalog.snapshot.search("list create message bucket issue file", within=view, limit=100))
    assert everything
    assert all(tool_id in view for tool_id in everything)


def test_an_app_without_a_visible_tool_is_not_recognised(catalog: Catalog) -> None:
    view = catalog.snapshot.view(Server("one", tools=("github:*", "files:*")))
    with_app = catalog.snapshot.search("search a file in slack", within=view)
    without = catalog.snapshot.search("search a file in nothing", within=view)
    assert found(with_app) == found(without)
    assert not any("slack" in hit.reason for hit in with_app)


def test_a_view_of_an_older_snapshot_still_restricts() -> None:
    catalog = Catalog()
    catalog.publish("a", [a_tool("a:ping", "Ping.")])
    view = catalog.snapshot.view(Server("all"))
    catalog.publish("b", [a_tool("b:ping", "Ping.")])
    assert found(catalog.snapshot.search("ping", within=view)) == ["a:ping"]


def test_a_tool_switched_off_is_found_by_an_operator_and_not_within_a_view() -> None:
    catalog = Catalog()
    catalog.publish("a", [a_tool("a:ping", "Ping."), a_tool("a:pong", "Ping too.")])
    catalog.apply_settings("a:ping", ToolSettings(enabled=False))
    snapshot = catalog.snapshot
    assert found(snapshot.search("ping")) == ["a:ping", "a:pong"]
    assert found(snapshot.search("ping", within=snapshot.view(Server("all")))) == ["a:pong"]


def test_a_tool_that_is_down_is_found_with_its_reason() -> None:
    catalog = Catalog()
    catalog.publish("a", [a_tool("a:ping", "Ping.")], available=False, reason="connection refused")
    (hit,) = catalog.snapshot.search("ping")
    assert hit.entry.reason == "connection refused"


def test_several_named_apps_get_a_place_each(catalog: Catalog) -> None:
    hits = catalog.snapshot.search("create a slack channel, then list the s3 buckets and open a github issue", limit=3)
    assert found(hits) == ["slack:conversations_create", "aws_s3:ListBuckets", "github:create_an_issue"]


def test_answers_hold_no_tool_twice_and_never_more_than_the_limit(catalog: Catalog) -> None:
    hits = found(catalog.snapshot.search("slack and slack and s3 and slack channel list", limit=5))
    assert len(hits) == len(set(hits)) == 5


def test_a_clause_keeps_its_place_beside_a_longer_one() -> None:
    catalog = Catalog()
    crowd = [a_tool(f"x:send_invoice_{number}", "Send the invoice by mail to a customer.") for number in range(30)]
    catalog.publish("x", [*crowd, a_tool("x:weather", "Forecast for a city.")])
    hits = found(catalog.snapshot.search("Send the invoice by mail to the customer. Also check the weather", limit=5))
    assert "x:weather" in hits


def test_clauses_are_parts_with_two_words_or_more_and_at_most_eight() -> None:
    assert clauses("create a channel") == []
    assert clauses("create a channel, then invite Ann and post a note. Thanks") == [
        "create a channel",
        "invite Ann",
        "post a note",
    ]
    assert len(clauses(", ".join(f"do thing {number}" for number in range(50)))) == 8


@pytest.mark.parametrize("app", ["github", "GitHub", "Github", "GITHUB", "git hub"])
def test_an_app_is_recognised_however_it_is_written(catalog: Catalog, app: str) -> None:
    (hit,) = catalog.snapshot.search(f"List in {app}", limit=1)
    assert hit.entry.id == "github:listRepoIssues"
    assert "the request names github" in hit.reason


def test_a_name_of_two_words_is_the_app_and_its_parts_are_not() -> None:
    catalog = Catalog()
    catalog.publish("google-calendar", [a_tool("google-calendar:add", "Add an event.")])
    catalog.publish("calendar", [a_tool("calendar:add", "Add an event.")])
    (hit, other) = catalog.snapshot.search("add an event to Google Calendar")
    assert "names google-calendar" in hit.reason
    assert "names" not in other.reason


def test_an_ordinary_verb_is_no_app_even_where_a_provider_is_called_like_it() -> None:
    catalog = Catalog()
    catalog.publish("search", [a_tool("search:web", "Web pages by words.")])
    catalog.publish("notion", [a_tool("notion:search_pages", "Search pages by title.")])
    hits = catalog.snapshot.search("search pages")
    assert found(hits)[0] == "notion:search_pages"
    assert "names" not in hits[0].reason


def test_a_cluster_names_its_app_only_where_it_has_one() -> None:
    catalog = Catalog()
    catalog.publish("pets", [a_tool("pets:list", "List everything.", cluster="Corner Shop")])
    catalog.publish("cars", [a_tool("cars:list", "List everything.")])
    assert found(catalog.snapshot.search("list everything in the corner shop"))[0] == "pets:list"
    catalog.publish("cars", [a_tool("cars:list", "List everything.", cluster="Corner Shop")])
    assert not any("names" in hit.reason for hit in catalog.snapshot.search("list everything in the corner shop"))


@pytest.mark.parametrize("query", ["repositories", "repositorie", "repositor", "reposito", "repo", "github repos"])
def test_beginnings_of_names_match_in_a_search_box(catalog: Catalog, query: str) -> None:
    assert "github:repositories_get" in found(catalog.snapshot.search(query, prefixes=True))


def test_a_single_letter_and_a_stop_word_are_beginnings_too(catalog: Catalog) -> None:
    assert "slack:conversations_create" in found(catalog.snapshot.search("c", prefixes=True))
    assert "files:about" in found(catalog.snapshot.search("ab", prefixes=True))
    assert "github:listRepoIssues" in found(catalog.snapshot.search("is", prefixes=True))


def test_a_finished_word_is_no_beginning(catalog: Catalog) -> None:
    assert catalog.snapshot.search("rep ", prefixes=True) == []


def test_keywords_stuffed_into_a_description_do_not_win() -> None:
    catalog = Catalog()
    stuffed = "Sends mail. " + "weather forecast city temperature rain " * 2_000
    catalog.publish("evil", [a_tool("evil:send", stuffed)])
    catalog.publish("met", [a_tool("met:forecast", "Weather forecast for a city.")])
    assert found(catalog.snapshot.search("weather forecast for a city"))[0] == "met:forecast"


def test_an_operators_description_is_what_is_searched() -> None:
    catalog = Catalog()
    catalog.publish("a", [a_tool("a:x", "Frobnicates.")])
    assert found(catalog.snapshot.search("umbrella")) == []
    catalog.apply_settings("a:x", ToolSettings(description="Lends an umbrella."))
    assert found(catalog.snapshot.search("umbrella")) == ["a:x"]
    assert found(catalog.snapshot.search("frobnicates")) == []


def test_odd_schemas_are_searched_for_what_they_have() -> None:
    root = {
        "type": "object",
        "properties": {"plain": True, "odd": {"description": 7}, "good": {"description": "Kelvin"}},
    }
    catalog = Catalog()
    catalog.publish("a", [Tool("a", "x", "", Schema(root)), Tool("a", "y", "", Schema({"properties": {}}))])
    for query in ("plain", "odd", "kelvin"):
        assert found(catalog.snapshot.search(query)) == ["a:x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("listRepoIssues", ["list", "repo", "issues"]),
        ("HTTPServer_getURL", ["http", "server", "get", "url"]),
        ("aws_s3 EC2 v2", ["aws", "s3", "ec2", "v2"]),
        ("GET /pets/{petId}", ["get", "pets", "pet", "id"]),
        ("Größe überÄnderung naïve", ["größe", "über", "änderung", "naïve"]),
        ("使用API", ["使用", "api"]),
        ("a-b.c:d", ["a", "b", "c", "d"]),
    ],
)
def test_words_are_split_at_humps_and_signs_never_at_digits(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "alike",
    [
        ["box", "boxes", "boxed", "boxing"],
        ["query", "queries"],
        ["movie", "movies"],
        ["city", "cities"],
        ["create", "creates", "created", "creating"],
        ["run", "runs", "running"],
        ["call", "calls", "called", "calling"],
        ["branch", "branches"],
        ["address", "addresses"],
    ],
)
def test_forms_of_one_word_have_one_stem(alike: list[str]) -> None:
    assert len({plain_stem(word) for word in alike}) == 1


@pytest.mark.parametrize("word", ["s3", "status", "string", "analysis", "access", "ids", "feed", "red", "ping", "größ"])
def test_words_that_only_look_like_forms_of_others_stay(word: str) -> None:
    assert plain_stem(word) == word


def test_a_stemmer_that_is_not_installed_leaves_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "Stemmer", None)
    assert stemmer() is plain_stem


def test_only_tools_that_changed_are_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    texts_of = counting.texts_of
    monkeypatch.setattr(counting, "texts_of", lambda entry: read.append(entry.id) or texts_of(entry))
    catalog = Catalog()
    catalog.publish("a", [a_tool("a:x", "One."), a_tool("a:y", "Two.")])
    catalog.snapshot.search("one")
    catalog.publish("b", [a_tool("b:z", "Three.")])
    catalog.set_availability("a", False, "down")
    catalog.publish("a", [a_tool("a:x", "One."), a_tool("a:y", "Two, but better.")])
    assert found(catalog.snapshot.search("better")) == ["a:y"]
    assert read == ["a:x", "a:y", "a:y", "b:z"]


def test_an_index_made_from_kept_counts_and_in_batches_answers_like_one_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counting, "_BATCH", 7)
    kept, tools = Catalog(), [a_tool(f"t:tool_{n}", f"Number {n} of {n % 7} kinds.") for n in range(50)]
    for size in (50, 20, 0, 35, 50):
        kept.publish("t", tools[:size])
        kept.snapshot.search("number")
    monkeypatch.undo()
    fresh = Catalog()
    fresh.publish("t", tools)
    for query in ("kinds", "number 3", "tool 17 of 3 kinds"):
        assert kept.snapshot.search(query, limit=50) == fresh.snapshot.search(query, limit=50)


def test_words_of_tools_long_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.catalog.search.engine._WASTEFUL_VOCABULARY", 20)
    searchers = Bm25fSearchers()
    catalog = Catalog(searchers=searchers)
    sizes: list[int] = []
    for number in range(30):
        catalog.publish("a", [a_tool("a:x", f"Says word{number} and other{number} and third{number}.")])
        assert found(catalog.snapshot.search(f"other{number}")) == ["a:x"]
        sizes.append(len(searchers._counts.vocabulary))
    assert max(sizes) < 30


def test_an_older_snapshot_searches_with_its_own_words() -> None:
    catalog = Catalog()
    catalog.publish("a", [a_tool("a:x", "Old words.")])
    older = catalog.snapshot
    older.search("old")
    catalog.publish("a", [a_tool("a:x", "Brand new vocabulary here.")])
    assert found(catalog.snapshot.search("vocabulary")) == ["a:x"]
    assert found(older.search("vocabulary")) == []
    assert found(older.search("old")) == ["a:x"]


def test_threads_that_search_at_once_build_one_index(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog()
    catalog.publish("a", [a_tool(f"a:tool_{number}", "Ping.") for number in range(200)])
    built: list[int] = []
    for_entries = counting.Counts.for_entries
    monkeypatch.setattr(
        counting.Counts, "for_entries", lambda counts, entries: built.append(1) or for_entries(counts, entries)
    )
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: found(catalog.snapshot.search("ping")), range(8)))
    assert built == [1]
    assert all(answer == answers[0] for answer in answers)


async def test_a_missing_index_is_built_in_a_worker_thread_while_the_loop_runs_on() -> None:
    catalog = Catalog()
    catalog.publish("a", [a_tool("a:ping", "Ping.")])
    with anyio.fail_after(10):
        assert not catalog.snapshot.search_is_prepared
        assert found(await catalog.search("ping")) == ["a:ping"]
        assert catalog.snapshot.search_is_prepared


async def test_a_search_within_a_view_uses_the_views_own_snapshot() -> None:
    catalog = Catalog()
    catalog.publish("a", [a_tool("a:ping", "Ping.")])
    view = catalog.snapshot.view(Server("all"))
    catalog.remove("a")
    with anyio.fail_after(10):
        assert found(await catalog.search("ping", within=view)) == ["a:ping"]
        assert found(await catalog.search("ping")) == []
