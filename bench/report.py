#!/usr/bin/env python3
"""Writes the tables of bench/README.md and docs/mass.md and the plots of
bench/plots from what bench/*.py and bench/mass kept in bench/results.

  bench/report.py [--check]   --check: changes nothing, fails if it would
"""

import argparse
import json
import statistics
import sys

import bars
from compared import (build_seconds, build_share, bytes_per_item,
                      comparison_rows, cost_points, exact_rows, fitted_exponent,
                      measured, rates)
from engine_process import ROOT
import mass_tables
import plots

BENCH = ROOT / "bench"
SET_TITLES = {
    "mixture-200k": "200,000 of a mixture",
    "mixture-1m": "1,000,000 of a mixture",
    "fashion": "Fashion-MNIST, 60,000",
    "wordnet": "WordNet glosses, 117,659",
    "mixture-100k": "100,000 of a mixture",
    "norms": "norms from 0.1 to 1, 100,000",
    "foreign": "foreign queries, 100,000",
}
ENGINE_TITLES = {"attendant": "Attendant", "faiss": "FAISS",
                 "hnswlib": "hnswlib"}
MODE_TITLES = {
    "attendant ivf": "Attendant IVF",
    "attendant ivf tuned": "Attendant IVF",
    "attendant ivf-disk": "Attendant IVF, keys on disk",
    "attendant ivf asked": "Attendant IVF, recall asked for",
    "attendant ivf proven": "Attendant IVF, proven top-100",
    "attendant ivf exact": "Attendant IVF, exact mass",
    "attendant flat exact": "Attendant FLAT, exact mass",
}


def title_of(cell):
    name = f"{cell['engine']} {cell['configuration']}"
    return MODE_TITLES.get(
        name, f"{ENGINE_TITLES[cell['engine']]} {cell['configuration']}")


def short(number):
    """3 significant digits, thousands apart."""
    if number >= 100:
        return f"{round(number, 3 - len(str(int(number)))):,.0f}"
    return f"{number:.3g}"


def rate_text(cell, kind, metric):
    values = rates(cell, kind, metric)
    return (f"{short(statistics.median(values))} "
            f"({short(min(values))} to {short(max(values))})")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |",
             "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def ratio_text(values):
    return (f"{statistics.median(values):.2f} "
            f"({values[0]:.2f} to {values[-1]:.2f})")


def conditions(result):
    rounds = result["rounds"]
    text = (f"{result['processor']}, {rounds} round{'s'[:rounds != 1]} of "
            f"{result['seconds']:g} s, {result['date']}")
    if result["metric"] != "queries_per_second":
        text += ("; the machine had other work, so rates are of processor "
                 "time")
    # Since 2026-11-28.
    for version in result.get("versions", {}).values():
        text += f"; {version}"
    return text


def all_conditions(results):
    """A line; of sets that were measured at different times, one each."""
    lines = {}
    for name, result in results["sets"].items():
        lines.setdefault(conditions(result), []).append(
            SET_TITLES.get(name, name))
    if len(lines) == 1:
        return f"{next(iter(lines))}."
    return "\n\n".join(f"{'; '.join(names)}: {line}."
                       for line, names in lines.items())


def missed_text(of_bars):
    """What bench/bars.py wants and was not reached."""
    of_bars = list(of_bars)
    missed = [bar for bar in of_bars if not bar.held]
    if not missed:
        return f"All {len(of_bars)} bars are held."
    return (f"Wanted and not reached, {len(missed)} of {len(of_bars)} bars:\n\n"
            + "\n".join(f"- {bar.text}" for bar in missed))


def recall_text(cell):
    """The recall, and what it took, as engine and configuration count it."""
    configuration = cell["configuration"]
    if configuration.endswith(" asked"):
        return f"{cell['recall']:.3f}"
    effort = cell["effort"]
    if configuration.endswith(" tuned"):
        # As AttendantEngine::Prepare.
        effort = f"asked {1 - 2 ** (-effort / 16):.4f}"
    return f"{cell['recall']:.3f} ({effort})"


def batch_recall_text(cell):
    """Since 2026-11-28."""
    return (f", recall {cell['batch_recall']:.3f}" if "batch_recall" in cell
            else "")


def ratio_rows(results):
    rows = {}
    for name, result in results["sets"].items():
        for recall, kind, rival, _, theirs, values in comparison_rows(result):
            row = rows.setdefault((name, recall, kind), {})
            row[rival] = ratio_text(values)
            if rival == "faiss":
                row["fastest"] = theirs["configuration"]
    return [[SET_TITLES.get(name, name), f"{recall:g}", KIND_TITLES[kind],
             row.get("faiss", ""), row.get("hnswlib", ""),
             row.get("fastest", "")]
            for (name, recall, kind), row in rows.items()]


def build_rows(results):
    """Seconds of ours and of each rival's least, and resident bytes."""
    for name, result in results["sets"].items():
        row = [SET_TITLES.get(name, name)]
        built = measured(result["cells"], "attendant")
        if not built:
            continue
        ours = built[0]
        row.append(f"{ours['build_seconds']:.1f}")
        for rival in ("faiss", "hnswlib"):
            theirs = build_seconds(result, rival)
            share = build_share(name, result, rival)
            row.append("" if theirs is None else f"{theirs:.1f} "
                       + ("on a busy machine" if share is None
                          else f"({share:.2f})"))
        row.append(f"{bytes_per_item(ours):.0f} "
                   f"({bytes_per_item(ours) / 4 / ours['dim']:.2f})")
        yield row


KIND_TITLES = {"single": "single, one core", "batch": "batches of 64, two cores"}


def rivals_text(results):
    parts = []
    parts.append("How many times as many queries a second as the fastest "
                 "configuration of each rival: median of the rounds' ratios "
                 "(least to greatest).")
    parts.append(table(["keys", "recall@100", "", "against FAISS",
                        "against hnswlib", "FAISS's fastest"],
                       ratio_rows(results)))
    parts.append(missed_text(bars.of_rivals(results)))
    parts.append("![ratios](plots/ratios.svg)")
    parts.append("Builds on two cores; in brackets, the share of theirs that "
                 "ours takes, and our bytes an item beside those of its fp32 "
                 "key.")
    parts.append(table(["keys", "Attendant s", "FAISS, quickest, s",
                        "hnswlib s", "bytes an item"],
                       list(build_rows(results))))
    for name, result in results["sets"].items():
        metric = result["metric"]
        rows = []
        for cell in result["cells"]:
            if not cell["single"]:
                rows.append([title_of(cell), f"{cell['wanted_recall']:g}",
                             f"not built: {cell['error']}" if "error" in cell
                             else f"never: {cell['unreachable']:.3f}",
                             "", "", "", "", "", ""])
                continue
            rows.append([
                title_of(cell), f"{cell['wanted_recall']:g}",
                recall_text(cell),
                rate_text(cell, "single", metric),
                rate_text(cell, "batch", metric) + batch_recall_text(cell),
                f"{cell['mass_error_median']:.2g} / "
                f"{cell['mass_error_95']:.2g}",
                (f"{100 * cell['mass_covered']:.1f} %"
                 if "mass_covered" in cell else "none"),
                f"{cell['build_seconds']:.1f}",
                f"{bytes_per_item(cell):.0f}"])
        parts.append(f"{SET_TITLES.get(name, name)}: {conditions(result)}. "
                     f"Temperature {result['temperature']:g}.")
        parts.append(table(
            ["system", "asked", "recall@100 (lists or candidates)",
             "queries/s, single", "queries/s, batches",
             "log partition off by, median / 95th",
             "its 95 % interval holds", "build s",
             "bytes an item"], rows))
    return "\n\n".join(parts)


def exact_text(results):
    rows = []
    for name, result in results["sets"].items():
        metric = result["metric"]
        for kind, ours, theirs, found in exact_rows(result):
            rows.append([
                SET_TITLES.get(name, name), KIND_TITLES[kind],
                title_of(ours), f"{ours['recall']:.4f}",
                f"{ours['mass_error_99']:.1g}",
                rate_text(ours, kind, metric),
                short(statistics.median(rates(theirs, kind, metric))),
                ratio_text(found)])
    return "\n\n".join([
        all_conditions(results),
        table(["keys", "", "answer", "recall@100",
               "log partition off by, 99th", "queries/s", "FAISS Flat",
               "ratio"], rows),
        missed_text(bars.of_exact(results))])


def cost_text(results):
    rows = []
    for result in sorted(results["sets"].values(),
                         key=lambda r: r["cells"][0]["keys"]):
        for cell in measured(result["cells"], "attendant"):
            metric = result["metric"]
            rows.append([f"{cell['keys']:,}", f"{cell['wanted_recall']:g}",
                         recall_text(cell)]
                        + [short(1e6 / statistics.median(
                            rates(cell, kind, metric)))
                            for kind in ("single", "batch")]
                        + [f"{cell['build_seconds']:.1f}",
                           f"{bytes_per_item(cell):.0f}",
                           f"{bytes_per_item(cell) / 4 / cell['dim']:.2f}"])
    fits = [f"{fitted_exponent(p):.2f} at {recall:g}, {KIND_TITLES[kind]}"
            for (recall, kind), p in cost_points(results).items()]
    return "\n\n".join([
        all_conditions(results),
        table(["keys", "asked", "recall@100 (lists)", "us a query, single",
               "us a query, batches", "build s", "bytes an item",
               "of fp32 keys"], rows),
        "Fitted exponents: " + "; ".join(fits) + ".",
        missed_text(bars.of_cost(results)),
        "![cost](plots/cost.svg)"])


def ratio_points(results):
    for name, result in results["sets"].items():
        for recall, kind, rival, _, _, values in comparison_rows(result):
            yield (f"{SET_TITLES.get(name, name)}, {recall:g}, "
                   f"{'single' if kind == 'single' else 'batch'}",
                   ENGINE_TITLES[rival], statistics.median(values),
                   values[0], values[-1])


def live_row(title, rounds, name):
    p99 = [a[name]["p99_ms"] for a in rounds]
    times = [a[name]["p99_ms"] / a["rest"]["p99_ms"] for a in rounds]
    return [title, short(statistics.median(a[name]["p50_ms"] for a in rounds)),
            f"{short(statistics.median(p99))} "
            f"({short(min(p99))} to {short(max(p99))})",
            f"{statistics.median(times):.2f}",
            *(short(statistics.median(a[name][part] for a in rounds))
              for part in ("server_p99_ms", "late_p99_ms")),
            f"{sum(a[name]['answered'] for a in rounds):,} of "
            f"{sum(a[name]['sent'] for a in rounds):,}"]


def live_text(result):
    rounds, ingest = result["rounds"], result["ingest"]
    items, keys = result["items"], result["items"] * result["dimension"] * 4
    rate = rounds[0]["rest"]["rate"]
    stored = statistics.median(a["write"]["writes"]["storedPerSecond"]
                               for a in rounds)
    peak = max(a["build"]["peak_bytes"] for a in rounds)
    resident = result["memory"]["resident_bytes"]
    parts = result["memory"]["parts"]
    killed = result["restart_after_kill"]
    starts = [[title, f"{start['ready_seconds']:.2f}",
               f"{start['index_seconds']:.2f}"]
              for title, start in (
                  ("a clean stop", result["restart_after_stop"]),
                  ("kill -9", killed))]
    lines = [
        f"{items:,} items of {result['dimension']} dimensions, "
        f"{result['cores']} cores of {result['processor']}, the generator on "
        f"the same, {result['date']}.", "",
        f"- Import, acknowledged when synced: "
        f"{short(ingest['items_per_second'])} items a second; the index was "
        f"ready {ingest['index_seconds']:.1f} s after the last.",
        f"- Resident at rest: {resident / items:.0f} bytes an item, "
        f"{resident / keys:.2f} times the keys; while all is built anew at "
        f"most {peak / items:.0f}, {peak / keys:.2f} times. By part, bytes an "
        f"item: " + ", ".join(
            f"{part.removesuffix('Bytes')} {size / items:.1f}"
            for part, size in parts.items()) + ".", "",
        table(["start after", "ready, s", "index ready, s"], starts), "",
        f"The kill came after {killed['stored']:,} items had been "
        f"acknowledged in {result['seconds']:g} s, of which "
        f"{killed['replayed']:,} were replayed.", "",
        f"Queries at {short(rate)} a second, 40 % of the closed loop's "
        f"{short(result['closed_loop_per_second'])}; {len(rounds)} rounds of "
        f"{result['seconds']:g} s, medians:", "",
        table(["", "p50, ms", "p99, ms", "p99 beside rest",
               "p99 in the server, ms", "sent late, p99, ms", "answered"],
              [live_row("at rest", rounds, "rest"),
               live_row("while all is built anew", rounds, "build"),
               live_row(f"while {short(stored)} items a second are written",
                        rounds, "write")]), "",
        verify_text(result["verify"]).capitalize() + ".", "",
        missed_text(bars.of_live(result))]
    return "\n".join(lines)


def verify_text(verify):
    """What attendant-load says of answers that it checked."""
    return (f"recall of the ten, of {verify['count']:,} queries, "
            f"{verify['recall']:.3f} (at least {verify['lowestRecall']:g})")


def spread(values, form):
    return (f"{form(statistics.median(values))} ({form(min(values))} to "
            f"{form(max(values))})")


def mass_time_rows(name, found):
    for cell in found["cells"]:
        row = [SET_TITLES.get(name, name), f"{cell['temperature']:g}"]
        for kind in ("single_ms", "batch_ms"):
            row += [short(statistics.median(a[way][kind]
                                            for a in cell["rounds"]))
                    for way in ("stated", "exact")]
            row.append(spread(bars.shares_of_scan(cell, kind),
                              lambda x: f"{x:.2f}"))
        error = cell["error"]
        yield row + [f"{error['95']:.2g} / {error['worst']:.2g}",
                     f"{100 * error['covered']:.1f} %"]


def mass_time_text(result):
    first = next(iter(result["sets"].values()))
    return "\n\n".join([
        f"{result['processor']}, {len(first['cells'][0]['rounds'])} rounds of "
        f"{result['seconds']:g} s, {first['queries']:,} queries, "
        f"{result['date']}; medians (least to greatest).",
        table(["keys", "temperature", "alone, ms", "exact, ms",
               "of its time", "in batches, ms", "exact, ms", "of its time",
               "log partition off by, 95th / worst",
               "its 95 % interval holds"],
              [row for name, found in result["sets"].items()
               for row in mass_time_rows(name, found)]),
        missed_text(bars.of_mass_time(result))])


SERVED_TITLES = {"ivf": "IVF", "auto": "AUTO"}


def indexes_text(result):
    first = result["rows"][0]
    return "\n\n".join([
        f"{first['keys']:,} keys, {result['processor']}, "
        f"{len(first['microseconds'])} rounds, {result['date']}; medians (least "
        "to greatest).",
        table(["data", "index", "goal", "recall@100", "us a query", "scored",
               "bytes a key", "build, s"],
              [[row["data"], row["index"], row["goal"],
                f"{row['recall']:.3f}", spread(row["microseconds"], short),
                f"{100 * row['scored_share']:.1f} %", f"{row['bytes']:.0f}",
                f"{row['build_seconds']:.1f}"] for row in result["rows"]])])


def beside_echo(rounds, name):
    """Rates, the share of the echo's, median latencies and their difference."""
    ratios = [100 * a[name]["per_second"] / a["echo"]["per_second"]
              for a in rounds]
    more = [a[name]["p50_us"] - a["echo"]["p50_us"] for a in rounds]

    def medians(part):
        return [short(statistics.median(a[server][part] for a in rounds))
                for server in ("echo", name)]

    return (medians("per_second") + [spread(ratios, lambda x: f"{x:.0f}")]
            + medians("p50_us") + [spread(more, lambda x: f"{x:.0f}")])


ECHO_COLUMNS = ["echo/s", "attendantd/s", "% of the echo", "echo p50, us",
                "attendantd p50, us", "more, us"]


def served_text(result):
    rows = [[SERVED_TITLES[name], callers] + beside_echo(rounds, name)
            for callers, rounds in result["rounds"].items()
            for name in SERVED_TITLES]
    parts = [
        f"{result['items']:,} items of {result['dimension']} dimensions, ten "
        f"results, {result['cores']} cores of {result['processor']}, "
        f"{len(next(iter(result['rounds'].values())))} rounds of "
        f"{result['seconds']:g} s, {result['date']}; medians (least to "
        f"greatest). AUTO is "
        f"{result['indexes']['auto']['activeKind'].removeprefix('INDEX_KIND_')} "
        f"here.",
        table(["index", "callers"] + ECHO_COLUMNS, rows)]
    # Since 2026-11-28.
    if "verify" in result:
        parts.append("; ".join(
            f"{SERVED_TITLES[name]}: {verify_text(verify)}"
            for name, verify in result["verify"].items())
            + ". Queries are stored keys with noise of a tenth of their norm.")
    else:
        parts.append("The echo's replies had no pooled value here, which "
                     "attendantd's have, and queries were random vectors, of "
                     "which little is found.")
    if "generator" in result:
        rates = [a["per_second"] for a in result["generator"]]
        parts.append("The load tester on one core, against a server on the "
                     "other that does nothing, 64 callers: "
                     f"{spread(rates, short)} requests a second.")
    if "many" in result:
        many = result["many"]
        shortlist = many.get("shortlist")
        parts.append(f"{many['items']:,} items of {many['dimension']} dimensions, "
                     f"ten results with a recall of {many['recall']:.3f} "
                     f"({many['asked']:.2f} was asked for), "
                     + (f"of a shortlist of {shortlist} with its pooled value"
                        if shortlist else
                        "which are the shortlist, without a pooled value")
                     + ", servers and callers in one process:")
        parts.append(table(["callers"] + ECHO_COLUMNS,
                           [[str(many["callers"])]
                            + beside_echo(many["rounds"], "attend")]))
        parts.append(missed_text(bars.of_served(result)))
    return "\n\n".join(parts)


def overload_rows(items, rounds):
    """A row for each stage of more than the capacity, with the one before."""
    for number, stage in enumerate(rounds[0]["stages"]):
        if stage["times"] <= 1:
            continue
        goodputs = [100 * a["stages"][number]["goodput"] for a in rounds]
        p99s = [a["stages"][number]["p99_ms"] / a["stages"][0]["p99_ms"]
                for a in rounds]
        after = [a["stages"][number + 1]["p99_ms"] / a["stages"][0]["p99_ms"]
                 for a in rounds]
        yield [f"{int(items):,}",
               spread([a["cost_ms"] for a in rounds], lambda x: f"{x:.1f}"),
               short(statistics.median(a["capacity"] for a in rounds)),
               f"{stage['times']:g}",
               spread(goodputs, lambda x: f"{x:.0f}"),
               spread(p99s, lambda x: f"{x:.1f}"),
               spread(after, lambda x: f"{x:.1f}"),
               # Since 2026-11-28.
               *(spread([a["stages"][number][part] for a in rounds], short)
                 for part in ("refused_p99_ms", "late_p99_ms") if part in stage),
               spread([a["stages"][number]["resident_mib"]
                       / a["stages"][0]["resident_mib"] for a in rounds],
                      lambda x: f"{x:.2f}"),
               f"{max(a['stages'][number]['probe_ms'] for a in rounds):.0f}"]


def overload_text(result):
    rows = [row for items, rounds in result["sizes"].items()
            for row in overload_rows(items, rounds)]
    rounds = len(next(iter(result["sizes"].values())))
    knows_refusals = "refused_p99_ms" in next(
        iter(result["sizes"].values()))[0]["stages"][0]
    where = ("the server on one of them" if result.get("apart")
             else "the generator on the same")
    return "\n\n".join([
        f"{result['dimension']} dimensions, {result['cores']} cores of "
        f"{result['processor']}, {where}, {rounds} rounds of "
        f"{result['seconds']:g} s a stage, {result['date']}; medians (least to "
        f"greatest)." + ("" if knows_refusals else
                         " What was answered after a stage is counted in it."),
        table(["items", "a query in the server, core ms", "capacity/s",
               "asked, times of it", "answered, % of it",
               "p99, times that at 0.7", "p99 2 s later, times that",
               *(["p99 of refusals, ms", "sent late, p99, ms"]
                 if knows_refusals else []),
               "memory, times that at 0.7", "longest probe, ms"], rows)]
        + ([missed_text(bars.of_overload(result))] if knows_refusals else []))


SECTIONS = {"served": served_text, "overload": overload_text,
            "overload-apart": overload_text,
            "rivals": rivals_text, "exact": exact_text,
            "mass-time": mass_time_text, "indexes": indexes_text,
            "cost": cost_text, "live": live_text}


def replace_section(path, text, name, content):
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        sys.exit(f"{path}: no markers {begin} ... {end}")
    return f"{head}{begin}\n{content}\n{end}{tail}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    outputs = {}
    readme = BENCH / "README.md"
    text = readme.read_text()
    for name, make_text in SECTIONS.items():
        path = BENCH / "results" / f"{name}.json"
        if not path.exists():
            continue
        results = json.loads(path.read_text())
        text = replace_section(readme, text, name, make_text(results))
        if name == "rivals":
            outputs[BENCH / "plots" / "ratios.svg"] = plots.ratios(
                list(ratio_points(results)))
        if name == "cost":
            outputs[BENCH / "plots" / "cost.svg"] = plots.lines(
                {f"recall {recall:g}, {KIND_TITLES[kind]}": points
                 for (recall, kind), points in cost_points(results).items()},
                "keys", "microseconds a query")
    outputs[readme] = text
    masses = BENCH / "results" / "mass.json"
    if masses.exists():
        page = ROOT / "docs" / "mass.md"
        outputs[page] = replace_section(
            page, page.read_text(), "mass",
            mass_tables.mass_text(json.loads(masses.read_text())))
    stale = [path for path, content in outputs.items()
             if not path.exists() or path.read_text() != content]
    if options.check:
        sys.exit(f"not as the results say: {stale}" if stale else 0)
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(outputs[path])
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
