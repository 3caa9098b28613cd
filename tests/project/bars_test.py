"""Tests which bars of bench/bars.py invented measurements reach and miss."""
import contextlib
import io
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import bars  # noqa: E402


def stage(times, **other):
    return {"name": f"{times:g} times", "times": times, "goodput": .7,
            "p99_ms": 10, "failed_probes": 0, "probe_ms": 20, "refused_p99_ms": 10,
            "resident_mib": 100, **other}


def overload(*goodputs, times=3, cost_ms=1, p99_after_ms=15, after_mib=110,
             **other):
    """As bench/overload.py has it, a round for each goodput; other: of the stage
    of so many times the capacity."""
    return {"sizes": {"300000": [
        {"cost_ms": cost_ms,
         "stages": [stage(.7),
                    stage(times, **{"goodput": goodput, "p99_ms": 30, **other}),
                    stage(.7, p99_ms=p99_after_ms, resident_mib=after_mib)]}
        for goodput in goodputs]}}


def served(rate, more_us, rate_many=45, sent=40_000, rate_of_16=60):
    """As bench/served.py has it, a round."""
    echo = {"per_second": 100, "p50_us": 100}
    return {"indexes": {"ivf": {}}, "generator": [{"per_second": sent}],
            "rounds": {
                callers: [{"echo": echo,
                           "ivf": {"per_second": of_echo,
                                   "p50_us": 100 + more_us}}]
                for callers, of_echo in (("1", 1), ("16", rate_of_16),
                                         ("64", rate))},
            "many": {"items": 200_000, "callers": 16, "rounds": [
                {"echo": echo, "attend": {"per_second": rate_many}}]}}


def mass_time(*shares, keys=100_000, error_95=.02, worst=.1):
    """As bench/mass_time.py has it, a round for each share."""
    return {"sets": {"wordnet": {"keys": keys, "cells": [{
        "temperature": .1, "error": {"95": error_95, "worst": worst},
        "rounds": [{"stated": {"single_ms": share}, "exact": {"single_ms": 1}}
                   for share in shares]}]}}}


def live(**other):
    """As bench/live.py has it, a round; other: what is just beyond a bar."""
    made = {"build_p99_ms": 20, "write_p99_ms": 20, "answered": 100,
            "answered_beside_writes": 100, "stored": 990,
            "resident_bytes": 768_000_000, "peak_bytes": 1_689_600_000,
            "items_per_second": 50_000, "stop_s": 5, "kill_s": 10,
            "items": 1_000_050, **other}
    return {
        "items": 1_000_000, "dimension": 128,
        "memory": {"resident_bytes": made["resident_bytes"]},
        "ingest": {"items_per_second": made["items_per_second"]},
        "restart_after_stop": {"ready_seconds": made["stop_s"]},
        "restart_after_kill": {"ready_seconds": made["kill_s"],
                               "least_items": 1_000_050,
                               "items": made["items"]},
        "rounds": [{"rest": {"p99_ms": 10},
                    "build": {"p99_ms": made["build_p99_ms"], "sent": 100,
                              "answered": made["answered"],
                              "peak_bytes": made["peak_bytes"]},
                    "write": {"p99_ms": made["write_p99_ms"], "sent": 100,
                              "answered": made["answered_beside_writes"],
                              "writes": {"due": 1000,
                                         "stored": made["stored"]}}}]}


def cell(engine, configuration, single, batch=None, recall=.99, recall_=None,
         **other):
    """As bench/compare.py has it, a round for each rate; recall_: what it has, if
    that is not what is wanted."""
    return {"engine": engine, "configuration": configuration, "keys": 60_000,
            "dim": 100, "resident_bytes": 60_000 * 540, "build_seconds": 1,
            "wanted_recall": recall, "recall": recall_ or recall or 1,
            "batch_recall": recall or 1, "mass_error_99": .001,
            "single": [{"queries_per_second": rate, "p50_ms": .15}
                       for rate in single],
            "batch": [{"queries_per_second": rate}
                      for rate in batch or single], **other}


def sets(name, *cells):
    return {"sets": {name: {"metric": "queries_per_second",
                            "date": "2026-11-29", "cells": list(cells)}}}


def rivals(faiss=1, hnswlib=1, seconds=5, recall=.99, **other):
    """Of Fashion-MNIST, beside 3 and 2.7 queries a second of ours; other: of our cell
    of that recall. The other recall has what reaches every bar."""
    made = []
    for asked in (.95, .99):
        is_other = asked != recall
        rates = (1, 1) if is_other else (faiss, hnswlib)
        made += [cell("attendant", "ivf tuned", [3], [2.7], asked,
                      **({} if is_other else other)),
                 cell("faiss", "slow", [.1], recall=asked),
                 cell("faiss", "Flat", [rates[0]], recall=asked),
                 cell("hnswlib", "M16", [rates[1]], [.9 * rates[1]], asked,
                      build_seconds=seconds)]
    # Ours of the recall come first: builds and bytes are those of the first.
    return sets("fashion", *sorted(
        made, key=lambda a: a["wanted_recall"] != recall))


def exact(proven=4.5, exact_=1.2, **other):
    return sets("fashion",
                cell("attendant", "ivf proven", [proven], [8], 0, **other),
                cell("attendant", "ivf exact", [1.2], [6], 0),
                cell("attendant", "flat exact", [exact_], [6], 0),
                cell("faiss", "Flat", [1], recall=0))


def cost(*points, **other):
    """Points: keys, and microseconds of a query."""
    return {"sets": {str(keys): {
        "metric": "queries_per_second", "date": "2026-11-29",
        "cells": [cell("attendant", "ivf tuned", [1e6 / us], recall=recall,
                       **{"keys": keys, **other}) for recall in (.95, .99)]}
        for keys, us in points}}


def made_unreachable(results):
    """The first cell, as bench/compare.py keeps one that can't be tuned."""
    first = next(iter(results["sets"].values()))["cells"][0]
    first.update(single=[], batch=[], unreachable=first["wanted_recall"] - .001)
    del first["recall"], first["batch_recall"]
    return results


def missed(found):
    return [str(bar) for bar in found if not bar.held]


class BarsTest(unittest.TestCase):
    def test_what_just_reaches_them_holds(self):
        self.assertEqual(missed(bars.of_overload(overload(.9))), [])
        self.assertEqual(missed(bars.of_served(served(60, 60))), [])

    def test_the_median_counts(self):
        self.assertEqual(missed(bars.of_overload(overload(.5, .9, .9))), [])
        self.assertEqual(len(missed(bars.of_overload(overload(.5, .5, .9)))), 1)

    def test_a_line_says_what_was_got_and_what_is_wanted(self):
        for found, want in (
                (overload(.89), "answered of the capacity: got 0.89, want at "
                                "least 0.9"),
                (overload(.9, p99_ms=31), "p99 to that before: got 3.1, want at "
                                          "most 3"),
                (overload(.9, p99_after_ms=16),
                 "p99 2 s later to that before: got 1.6, want at most 1.5"),
                (overload(.9, refused_p99_ms=11),
                 "p99 of refusals, ms: got 11, want at most 10"),
                (overload(.9, after_mib=111),
                 "memory to that before: got 1.11, want at most 1.1"),
                (overload(.9, resident_mib=120),
                 "memory to that before: got 1.2, want at most 1.1"),
                (overload(.9, probe_ms=1001),
                 "longest probe, ms: got 1001, want at most 1000"),
                (overload(.9, failed_probes=1),
                 "probes without an answer: got 1, want at most 0")):
            lines = missed(bars.of_overload(found))
            self.assertEqual(len(lines), 1, lines)
            self.assertIn(want, lines[0])
        self.assertEqual(len(missed(bars.of_served(served(59, 60)))), 1)
        self.assertEqual(len(missed(bars.of_served(served(60, 61)))), 1)
        self.assertEqual(len(missed(bars.of_served(served(60, 60, 44)))), 1)
        for other in ({"sent": 39_999}, {"rate_of_16": 59}):
            lines = missed(bars.of_served(served(60, 60, **other)))
            self.assertEqual(len(lines), 1, lines)

    def test_more_keys_have_less_of_the_time(self):
        for keys, share, count in ((99_999, 9, 0), (100_000, .25, 0),
                                   (100_000, .26, 1), (999_999, .25, 0),
                                   (1_000_000, .2, 0), (1_000_000, .21, 1)):
            self.assertEqual(
                len(missed(bars.of_mass_time(mass_time(share, keys=keys)))),
                count, (keys, share))
        self.assertEqual(missed(bars.of_mass_time(mass_time(.2, .2, .9))), [])

    def test_errors_of_a_stated_precision_are_held_at_any_size(self):
        for found in (mass_time(.1, keys=10, error_95=.021),
                      mass_time(.1, keys=10, worst=.11)):
            self.assertEqual(len(missed(bars.of_mass_time(found))), 1)

    def test_more_than_three_times_the_capacity_may_cost_more_of_it(self):
        for times, goodput, count in ((3, .89, 1), (5, .8, 0), (10, .8, 0),
                                      (10, .79, 1)):
            found = overload(goodput, times=times)
            self.assertEqual(len(missed(bars.of_overload(found))), count,
                             (times, goodput))

    def test_a_live_catalog_misses_each_bar_alone(self):
        self.assertEqual(missed(bars.of_live(live())), [])
        for other in ({"build_p99_ms": 21}, {"write_p99_ms": 21},
                      {"answered": 99}, {"answered_beside_writes": 99},
                      {"stored": 989}, {"peak_bytes": 1_690_000_000},
                      {"resident_bytes": 769_000_000},
                      {"items_per_second": 49_999}, {"stop_s": 5.1},
                      {"kill_s": 10.1}, {"items": 1_000_049}):
            self.assertEqual(len(missed(bars.of_live(live(**other)))), 1, other)

    def test_the_fastest_of_a_rival_is_what_ours_is_held_to(self):
        self.assertEqual(missed(bars.of_rivals(rivals())), [])
        for other in ({"hnswlib": 1.1}, {"seconds": 4.9},
                      {"resident_bytes": 60_000 * 541}):
            lines = missed(bars.of_rivals(rivals(**other)))
            self.assertEqual(len(lines), 2 if "hnswlib" in other else 1, lines)
        # Alone it is twice, and in batches 1.8 times.
        self.assertEqual(missed(bars.of_rivals(rivals(faiss=1.5))), [])
        self.assertEqual(len(missed(bars.of_rivals(rivals(faiss=1.51)))), 2)
        # hnswlib is a rival of .99 alone.
        self.assertEqual(missed(bars.of_rivals(rivals(hnswlib=2, recall=.95))),
                         [])

    def test_a_rival_that_was_not_built_is_missed(self):
        found = rivals()
        found["sets"]["fashion"]["cells"].append(
            {"engine": "faiss", "configuration": "IVF0", "wanted_recall": .99,
             "error": "no", "single": [], "batch": []})
        self.assertEqual(len(missed(bars.of_rivals(found))), 1)

    def test_nothing_is_held_by_what_was_not_built(self):
        for of, found, count in ((bars.of_rivals, rivals(), 6),
                                 (bars.of_exact, exact(), 6)):
            cells = found["sets"]["fashion"]["cells"]
            for cell in cells:
                del cell["build_seconds"]
                cell.update(error="no", single=[], batch=[])
            lines = missed(of(found))
            self.assertIn("MISSED: fashion, cells that an engine could not "
                          f"build: got {len(cells)}, want at most 0", lines)
            self.assertEqual(sum("got none" in line for line in lines), count)
            self.assertEqual(len(lines), 1 + count, lines)

    def test_what_is_never_reached_is_missed_with_all_that_it_is_compared_with(self):
        self.assertEqual(missed(bars.of_rivals(made_unreachable(rivals()))), [
            # Of hnswlib there are bars of .99 alone.
            "MISSED: fashion at 0.99, single, times faiss: got none, want at "
            "least 2",
            "MISSED: fashion at 0.99, single, times hnswlib: got none, want at "
            "least 3",
            "MISSED: fashion at 0.99, batch, times faiss: got none, want at "
            "least 1.8",
            "MISSED: fashion at 0.99, batch, times hnswlib: got none, want at "
            "least 3",
            "MISSED: fashion, ivf tuned at 0.99, recall: got 0.989, want at "
            "least 0.99"])
        # The sizes that are left have an exponent.
        lines = missed(bars.of_cost(made_unreachable(
            cost((10, 1), (100, 1), (1000, 1)))))
        self.assertEqual(lines, ["MISSED: 10, ivf tuned at 0.95, recall: got "
                                 "0.949, want at least 0.95"])

    def test_a_rival_that_never_reaches_it_is_nothing_to_be_compared_with(self):
        found = rivals()
        for cell in found["sets"]["fashion"]["cells"]:
            if cell["engine"] == "faiss" and cell["wanted_recall"] == .99:
                cell.update(single=[], batch=[], unreachable=.9)
        self.assertEqual(len(missed(bars.of_rivals(found))), 2)

    def test_cells_that_are_not_there_are_missed(self):
        for of, found, count in ((bars.of_rivals, rivals(), 6),
                                 (bars.of_exact, exact(), 6)):
            found["sets"]["fashion"]["cells"] = []
            self.assertEqual(len(missed(of(found))), count)
        # One of the three exact answers, alone and in batches.
        found = exact()
        del found["sets"]["fashion"]["cells"][1]
        self.assertEqual(len(missed(bars.of_exact(found))), 2)

    def test_recalls_are_those_asked_for_alone_and_in_batches(self):
        for of, found in ((bars.of_rivals, rivals(recall_=.9899)),
                          (bars.of_exact, exact(recall_=.9999)),
                          (bars.of_rivals, rivals(batch_recall=.9895)),
                          (bars.of_exact, exact(batch_recall=.9999))):
            lines = missed(of(found))
            self.assertEqual(len(lines), 1, lines)
            self.assertIn("recall", lines[0])
        # 960 of 1,000 queries are in batches: with 1 for the others, .98958 of
        # them makes .99 of all.
        self.assertEqual(missed(bars.of_rivals(rivals(batch_recall=.9896))), [])
        # None is left out of 64.
        found = rivals(batch_recall=.9899)
        found["sets"]["fashion"]["queries"] = 64
        self.assertEqual(len(missed(bars.of_rivals(found))), 1)
        # What is asked without being tuned has what it has.
        found = rivals()
        found["sets"]["fashion"]["cells"].append(
            cell("attendant", "ivf asked", [3], recall=.99, recall_=.9,
                 batch_recall=.9))
        self.assertEqual(missed(bars.of_rivals(found)), [])

    def test_recalls_of_batches_were_not_always_measured(self):
        for date, count in (("2026-11-28", 0), ("2026-11-29", 1)):
            found = rivals()
            del found["sets"]["fashion"]["cells"][0]["batch_recall"]
            found["sets"]["fashion"]["date"] = date
            self.assertEqual(len(missed(bars.of_rivals(found))), count)

    def test_exact_answers_are_held_to_a_flat_scan(self):
        self.assertEqual(missed(bars.of_exact(exact())), [])
        for other in ({"proven": 4.4}, {"exact_": 1.1},
                      {"mass_error_99": .0011}):
            self.assertEqual(len(missed(bars.of_exact(exact(**other)))), 1,
                             other)
        slow = exact()
        slow["sets"]["fashion"]["cells"][0]["single"][0]["p50_ms"] = .16
        self.assertEqual(len(missed(bars.of_exact(slow))), 1)

    def test_cost_grows_by_less_than_a_power(self):
        self.assertEqual(missed(bars.of_cost(cost((10, 1), (1000, 15)))), [])
        self.assertEqual(
            len(missed(bars.of_cost(cost((10, 1), (1000, 16))))), 4)

    def test_one_size_has_no_exponent(self):
        lines = missed(bars.of_cost(cost((10, 1))))
        self.assertEqual(len(lines), 4, lines)
        self.assertIn("got none", lines[0])

    def test_cheap_queries_have_no_bar_of_answers(self):
        found = overload(.1, cost_ms=.9)
        found["sizes"]["600000"] = overload(.9)["sizes"]["300000"]
        self.assertEqual(missed(bars.of_overload(found)), [])

    def test_not_all_queries_may_be_cheap(self):
        self.assertEqual(missed(bars.of_overload(overload(.1, cost_ms=.9))), [
            "MISSED: sizes of 1 ms a query and more: got 0, want at least 1"])

    def test_a_set_without_temperatures_is_missed(self):
        found = mass_time(.1)
        found["sets"]["norms"] = {"keys": 100_000, "cells": []}
        self.assertEqual(len(missed(bars.of_mass_time(found))), 1)

    def test_a_value_never_reads_as_one_on_the_other_side_of_its_bar(self):
        for got, want in ((.98996, "got 0.98996, want at least 0.99"),
                          (.99004, "got 0.99, want at least 0.99")):
            self.assertIn(want, bars.Bar("", got, least=.99).text)
        self.assertIn("got 0.99004, want at most 0.99",
                      bars.Bar("", .99004, most=.99).text)

    def test_what_was_not_measured_is_missed(self):
        self.assertFalse(bars.Bar("", float("nan"), least=0).held)
        self.assertFalse(bars.Bar("", float("nan"), most=0).held)

    def test_nothing_is_held_where_there_is_no_bar(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertFalse(bars.all_held([]))
            self.assertFalse(bars.all_held(bars.of_mass_time({"sets": {}})))
        self.assertEqual(said.getvalue().count("MISSED"), 2)

    def test_one_that_is_missed_fails_them_all(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertTrue(bars.all_held(bars.of_served(served(60, 60))))
            self.assertFalse(bars.all_held(bars.of_served(served(60, 61))))
        self.assertEqual(said.getvalue().count("MISSED"), 1)
        self.assertEqual(said.getvalue().count("held"), 9)


if __name__ == "__main__":
    unittest.main()
