"""BioPerl's RemoteBlast against BLAST's URL API of a real server, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.serving import SEQUENCES, Served
from swsearch.api import search

QUERIES = "".join(f">{name} protein {name}\n{SEQUENCES[name]}\n" for name in ("alpha", "delta"))

PERL = """
use strict; use Bio::Tools::Run::RemoteBlast; use Bio::SeqIO;
my ($url, $database, $queries) = @ARGV;
$Bio::Tools::Run::RemoteBlast::HEADER{'FILTER'} = 'F';
my $blast = Bio::Tools::Run::RemoteBlast->new('-prog' => 'blastp', '-data' => $database, '-expect' => '10');
$blast->set_url_base($url);
my $read = Bio::SeqIO->new(-file => $queries, -format => 'fasta');
while (my $query = $read->next_seq()) { $blast->submit_blast($query) > 0 or die "not submitted"; }
while (my @rids = $blast->each_rid) {
    foreach my $rid (@rids) {
        my $report = $blast->retrieve_blast($rid);
        if (!ref($report)) { die "failed" if $report < 0; next; }
        while (my $result = $report->next_result()) {
            while (my $hit = $result->next_hit) {
                while (my $hsp = $hit->next_hsp) {
                    my @places = ($hsp->start('hit'), $hsp->end('hit'));
                    print join(" ", $result->query_name, $hit->name, $hsp->score, @places), "\n";
                }
            }
        }
        $blast->remove_rid($rid);
    }
}
"""
"""A program of BioPerl's RemoteBlast, which takes reports as text apart."""


@pytest.mark.peer
def test_bioperl_finds_what_a_search_finds(served: Served, tmp_path: Path) -> None:
    perl = ["perl", "-MBio::Tools::Run::RemoteBlast", "-e"]
    if shutil.which("perl") is None or subprocess.run([*perl, "1"], capture_output=True, check=False).returncode:
        pytest.skip("not installed: BioPerl's RemoteBlast (Debian: libbio-tools-run-remoteblast-perl)")
    (tmp_path / "queries.fasta").write_text(QUERIES)
    words = [f"{served.url}/Blast.cgi", "tiny", str(tmp_path / "queries.fasta")]
    made = subprocess.run([*perl, PERL, *words], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    results = search(QUERIES, str(served.jobs.settings.databases[0]), statistics="published")
    known = [
        f"{result.query_id} {hit.subject_id} {hit.score} "
        f"{hit.alignment.coordinates[0][0] + 1} {hit.alignment.coordinates[0][-1]}"
        for result in results
        for hit in result.hits
    ]
    assert sorted(made.stdout.splitlines()) == sorted(known)
