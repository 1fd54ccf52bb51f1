"""Pictures of results with matplotlib: what is drawn is what the results say."""

import sys

import numpy as np
import pytest

import swsearch
from support.samples import sample
from support.translated_cases import search_records
from swsearch import plots
from swsearch.errors import InputError
from swsearch.scoring import Scoring

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of matplotlib's own dependencies


@pytest.fixture
def pyplot():
    """Matplotlib without a screen."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as module

    yield module
    module.close("all")


@pytest.fixture(scope="module")
def results(examples):
    data = examples / "data"
    found = swsearch.search(
        data / "queries.fasta", data / "swissprot_sample.fasta.gz", distribution=True, engine="cpu"
    )
    return list(found)


def test_scores(pyplot, results):
    for result in results:
        axes = result.plot_scores()
        _, counts = result.distribution.histogram()
        drawn = [bar.get_height() for bar in axes.containers[0]]
        assert drawn == counts.tolist()
        assert sum(bar.get_height() for bar in axes.containers[1]) == len(result.hits)
        assert axes.get_yscale() == "log"
        assert axes.get_xlim()[1] > result.hits[0].score
        (line,) = axes.lines
        assert np.nanmax(line.get_ydata()) == result.distribution.expected.max()
        axes.figure.canvas.draw()


@pytest.mark.parametrize("mode", ["global", "semiglobal"])
def test_scores_of_the_other_modes(pyplot, examples, mode):
    data = examples / "data"
    result = next(
        swsearch.search(data / "queries.fasta", data / "swissprot_sample.fasta.gz", mode=mode, distribution=True)
    )
    axes = pyplot.figure().add_subplot()
    assert result.plot_scores(axes) is axes
    axes.figure.canvas.draw()
    assert axes.get_xlim()[0] == result.distribution.edges[0]


def test_scores_without_statistics_or_hits(pyplot):
    result = next(
        swsearch.search(
            "WWWWW", [("a", "AAAA"), ("b", "")], scoring=Scoring(gap_open=3), statistics="none", distribution=True
        )
    )
    axes = result.plot_scores()
    axes.figure.canvas.draw()
    assert not axes.lines
    assert not next(swsearch.search("WWWWW", ["AAAA"], distribution=True)).plot_coverage().containers[0]


def test_coverage(pyplot, results):
    result = results[0]
    axes = result.plot_coverage(max_hits=10)
    bars = axes.containers[0]
    assert len(bars) == 10
    for bar, hit in zip(bars, result.hits, strict=False):
        assert bar.get_x() == hit.query_range[0] + 0.5
        assert bar.get_width() == hit.query_range[1] - hit.query_range[0]
    assert axes.get_xlim() == (0.5, 508.5)
    shown = {bar.get_facecolor() for bar in result.plot_coverage().containers[0]}
    assert len(shown) == len({int(np.searchsorted(plots.CLASS_LIMITS, h.bit_score, "right")) for h in result.hits})
    axes.figure.canvas.draw()


def test_dots(pyplot, results):
    hit = results[4].hits[0]
    axes = hit.plot_dots()
    (path,) = axes.lines
    assert path.get_xdata().tolist() == [1, 242]
    dots = axes.images[0].get_array()
    assert dots.shape == (241, 241)
    middles = np.arange(5, 105)
    assert dots[middles, middles].mean() > 0.95  # an identical subject
    assert dots.mean() < 0.2
    axes.figure.canvas.draw()


@pytest.mark.parametrize(
    "program", sample(["blastx", "tblastn", "tblastx", "shifted"], lambda name: name == "tblastn")
)
def test_translated_dna_is_drawn_on_the_dna(pyplot, program):
    results = search_records("blastx", frame_shift=15) if program == "shifted" else search_records(program)
    is_dna = program in ("tblastn", "tblastx"), program != "tblastn"  # subject, query
    for result in results:
        bars = list(result.plot_coverage().containers[0]) if len(result) else []
        spans = [(round(bar.get_x() - 0.5), round(bar.get_x() - 0.5 + bar.get_width())) for bar in bars]
        assert spans == [hsp.query_range for hit in result for hsp in hit.hsps]
        for hit in result:
            axes = hit.plot_dots(window=5)
            assert [("nucleotide" in label) for label in (axes.get_ylabel(), axes.get_xlabel())] == list(is_dna)
            dots = np.asarray(axes.images[0].get_array())
            left, right, bottom, top = axes.images[0].get_extent()
            for hsp, line in zip(hit.hsps, axes.lines, strict=True):
                x, y = line.get_data()
                assert {int(min(x)), int(max(x))} & {hsp.query_range[0] + 1, hsp.query_range[1]}
                assert {int(min(y)), int(max(y))} & {hsp.subject_range[0] + 1, hsp.subject_range[1]}
            x, y = axes.lines[0].get_data()  # dots lie below the best alignment's line
            middle = (x[0] + x[1]) / 2, (y[0] + y[1]) / 2
            column = int((middle[0] - left) / (right - left) * dots.shape[1])
            row = int((middle[1] - bottom) / (top - bottom) * dots.shape[0])
            near = dots[max(row - 6, 0) : row + 7, max(column - 6, 0) : column + 7]
            assert near.any(), (program, hit.subject_id)
        pyplot.close("all")


@pytest.mark.parametrize("rows", [1, 40, 10**6])
@pytest.mark.parametrize(("window", "threshold"), [(1, 4), (7, 9), (8, 0)])
def test_dots_are_windows_that_reach_the_threshold(monkeypatch, results, rows, window, threshold):
    monkeypatch.setattr(plots, "DOT_ROWS", rows)
    pair = next(hit for hit in reversed(results[0].hits) if hit.subject_length < plots.DOT_PIXELS).pair
    got = plots._dots(pair, window, threshold)
    expected = np.zeros((len(pair.subject), len(pair.query)), dtype=bool)
    for j in range(len(pair.subject) - window + 1):
        for i in range(len(pair.query) - window + 1):
            a, b = pair.query[i : i + window], pair.subject[j : j + window]
            if pair.scoring.matrix.scores[a, b].sum(dtype=int) >= threshold:
                expected[j + window // 2, i + window // 2] = True
    assert np.array_equal(got, expected)


def test_long_sequences_share_dots_and_short_ones_have_none(monkeypatch, results):
    monkeypatch.setattr(plots, "DOT_PIXELS", 50)
    pair = results[4].hits[0].pair
    small = plots._dots(pair, 5, 15)
    assert small.shape == (50, 50)
    assert small.diagonal()[2:48].all()
    assert not plots._dots(pair, 250, 0).any()


def test_errors(pyplot, results, monkeypatch):
    plain = next(swsearch.search("MKVLAAGIVG", ["MKVLAAGIVG"], evalue=1e9))
    with pytest.raises(InputError, match="distribution=True"):
        plain.plot_scores()
    with pytest.raises(InputError, match="window: got 0"):
        plain.hits[0].plot_dots(window=0)
    with pytest.raises(InputError, match="max_hits: got 0"):
        plain.plot_coverage(max_hits=0)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (results[0].plot_scores, plain.plot_coverage, plain.hits[0].plot_dots):
        with pytest.raises(InputError, match=r"swsearch\[plot\]"):
            draw()
