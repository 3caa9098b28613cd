"""Tables of docs/mass.md from what bench/mass/mass_benchmark --json kept."""

SET_TITLES = {
    "retail": "Online Retail, 3,659",
    "fashion": "Fashion-MNIST, 60,000",
    "wordnet": "WordNet glosses, 117,659",
    "norms": "norms .1 to 1, 100,000",
    "foreign": "foreign queries, 100,000",
    "wordnet-foreign": "foreign queries over WordNet",
}
FILTER_TITLES = {"all": "", "0.1": ", .1 left", "0.001": ", .001 left"}


def short(number):
    """Two significant digits, without the zero before the point."""
    if number == 0:
        return "0"
    text = f"{number:.2g}" if number >= 1e-4 else f"{number:.0e}"
    return text[1:] if text.startswith("0.") else text


def share(number):
    """Three digits; 1 is all of them."""
    return "1" if number == 1 else f"{min(number, .999):.3f}"[1:]


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def distinct(cells, name):
    return list(dict.fromkeys(cell[name] for cell in cells))


def where(cell):
    title = SET_TITLES.get(cell["keys"], cell["keys"])
    title += FILTER_TITLES.get(cell["filter"], f", {cell['filter']}")
    title += f", {short(cell['temperature'])}"
    if "min_mass" in cell:
        title += f", min_mass {short(cell['min_mass'])}"
    return title


def bar_rows(cells):
    bars = {}
    for cell in cells:
        for bar, met in cell.get("bars", {}).items():
            bars.setdefault((cell["asked"], bar), []).append((met, cell))
    for (asked, bar), held_to in bars.items():
        missed = "; ".join(where(cell) for met, cell in held_to if not met)
        met_count = sum(met for met, _ in held_to)
        yield [asked, bar, f"{met_count} of {len(held_to)}", missed]


def by_temperature(cells, text_of):
    """A row for each set and filter where something is not exact."""
    temperatures = distinct(cells, "temperature")
    rows = []
    for keys in distinct(cells, "keys"):
        for name in distinct(cells, "filter"):
            row = {cell["temperature"]: cell for cell in cells
                   if cell["keys"] == keys and cell["filter"] == name}
            if not row or all(cell["exact"] == 1 for cell in row.values()):
                continue
            title = SET_TITLES.get(keys, keys) + FILTER_TITLES.get(
                name, f", {name}")
            rows.append([title] + [text_of(row[t]) if t in row else ""
                                   for t in temperatures])
    return table(["keys"] + [short(t) for t in temperatures], rows)


def estimate_text(cell):
    p95 = cell["error_p95"]
    width = f"{cell['width'] / p95:.1f}" if p95 > 0 else ""
    return (f"{short(p95)} ({short(cell['error_worst'])}) "
            f"{share(cell['covered'])} {width}")


def bound_text(cell):
    return short(cell["width"] / 2)


def set_rows(cells):
    for keys in distinct(cells, "keys"):
        row = [SET_TITLES.get(keys, keys)]
        for mass in distinct(cells, "min_mass"):
            of_mass = [cell for cell in cells
                       if cell["keys"] == keys and cell["min_mass"] == mass]
            # Cells with enough sets within the cap.
            held_to = [cell for cell in of_mass
                       if any(bar.startswith("size")
                              for bar in cell.get("bars", {}))]
            row.append(f"{share(min(c['held'] for c in held_to))} "
                       f"{max(c['size_ratio'] for c in held_to):.3f} "
                       f"({len(of_mass) - len(held_to)})" if held_to else "")
        yield row


def time_rows(cells):
    for keys in distinct(cells, "keys"):
        row = [SET_TITLES.get(keys, keys)]
        for temperature in distinct(cells, "temperature"):
            of = sorted(cell["time_of_exact"] for cell in cells
                        if cell["keys"] == keys and cell["filter"] == "all"
                        and cell["temperature"] == temperature)
            row.append(f"{of[len(of) // 2]:.2f}")
        yield row


def counts_text(cells):
    texts = []
    for asked in distinct(cells, "asked"):
        counts = [cell["queries"] for cell in cells if cell["asked"] == asked]
        least, most = min(counts), max(counts)
        count = f"{least:,}" + (f" to {most:,}" if most > least else "")
        texts.append(f"{count} ({asked})")
    return ", ".join(texts)


def mass_text(cells):
    parts = []
    parts.append(f"Queries a cell: {counts_text(cells)}. Cells (a set of keys, "
                 "a filter, a temperature) that meet each bar:")
    parts.append(table(["asked", "bar", "met in", "missed by"],
                       list(bar_rows(cells))))
    for asked, title in (("unstated", "Nothing asked of precision"),
                         ("learned", "The same of an index that learned from "
                          "256 other queries"),
                         ("0.02", "`mass_precision` .02")):
        of = [cell for cell in cells if cell["asked"] == asked]
        if not of:
            continue
        parts.append(
            f"{title}, by temperature: error of `log_partition` at the 95th "
            "percentile (the worst), the share of queries whose interval held "
            "it, and the median width over the former. Rows where all is exact "
            "are left out.")
        parts.append(by_temperature(of, estimate_text))
    of = [cell for cell in cells if cell["asked"] == "bound"]
    if of:
        parts.append("`BOUND`: median half-width.")
        parts.append(by_temperature(of, bound_text))
    of = [cell for cell in cells if cell["asked"] == "min_mass"]
    if of:
        parts.append(
            "`min_mass` with the greatest cap, 10,000, over temperatures and "
            "filters: the least share of queries whose set really holds it and "
            "the greatest median size over the smallest exact set's (in "
            "brackets: cells, of 16, where that set is beyond the cap for all "
            "but a few queries).")
        parts.append(table(["keys"] + [short(mass) for mass in
                                       distinct(of, "min_mass")],
                           list(set_rows(of))))
        parts.append("Its time as a share of that of an exact scan with the "
                     "same cap, no filter, by temperature:")
        parts.append(table(["keys"] + [short(t) for t in
                                       distinct(of, "temperature")],
                           list(time_rows(of))))
    return "\n\n".join(parts)
