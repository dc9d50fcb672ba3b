"""How the results of bench/distributed look on a terminal and in docs/measurements.md."""


def cell(value, digits):
    return "" if value is None else f"{value:,.{digits}f}"


def table(headings, rows):
    return ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)] + [
        "| " + " | ".join(cells) + " |" for cells in rows]


def local_table(rows):
    lines = ["", "Worker processes of this machine, one thread each, real computation. X: iterations a second.", ""]
    cells = [[row["net"], row["way"], cell(row["alone"], 2), cell(row["one"], 2), cell(row.get("efficiency_1"), 3),
              cell(row.get("round_overhead_ms"), 2), cell(row["two"], 2), cell(row.get("efficiency_2"), 3),
              cell(row.get("model_2"), 3), cell(row.get("coordinator_ms"), 2), str(row["runs"])] for row in rows]
    lines += table(["net", "exchange", "X alone", "X 1 worker", "E_1", "overhead ms a round", "X 2 workers", "E_2",
                    "E_2 expected of E_1", "coordinator CPU ms a round", "runs"], cells)
    return lines + [f"- {row['net']}, {row['way']}, {who}: {text}"
                    for row in rows for who, text in row["errors"].items()]


def exchange(row):
    way = row["topology"] + ("" if row["overlap"] == "WAIT" else ", " + row["overlap"].lower())
    way += f", {row['codec']}" if row["codec"] else ""
    if row["mode"] == "GRADIENT":
        return f"gradients, {way}"
    return f"{row['steps']} step" + ("s" if row["steps"] > 1 else "") + f", {way}"


def verdict(row):
    if not row["valid"]:
        return "no"
    # Others kept the processors busy.
    return "yes" if row["machine_busy"] < 0.8 else "busy machine"


def node_tables(rows, rate, slower):
    motion = f", everything {slower:g} times as slow" if slower > 1 else ""
    lines = ["", f"Emulated nodes on links of {rate}{motion}, computation a pause. E: measured, by alpha and beta alone, and",
             "with what a worker costs besides (gamma, fitted to the first row with as many parameters).", ""]
    cells = [[row["net"], exchange(row), str(row["workers"]), cell(row["round_ms"], 1), cell(row["efficiency"], 3),
              cell(row["model_efficiency"], 3), cell(row["fitted_efficiency"], 3), cell(row["wait_ms"], 1),
              cell(row["late_ms"], 1), cell(row["coordinator_ms"], 1), cell(row["worker_ms"], 1),
              f"{100 * row['cores_used']:.0f}", f"{100 * row['machine_busy']:.0f}", verdict(row)] for row in rows]
    lines += table(["net", "exchange", "N", "round ms", "E_N", "E alpha-beta", "E with gamma", "wait ms",
                    "pause late ms", "coordinator CPU ms", "a worker's CPU ms", "own % of cores", "all %", "valid"],
                   cells)
    lines += ["", "Bytes of a worker in a round that TCP delivered, the formula (within 3 % and heartbeats), and",
              "all that its link carried, with headers and what was sent again.", ""]
    cells = [[row["net"], exchange(row), str(row["workers"]), cell(row["up_bytes"], 0), cell(row["up_formula"], 0),
              f"{100 * row['up_worst']:+.2f}", cell(row["down_bytes"], 0), cell(row["down_formula"], 0),
              f"{100 * row['down_worst']:+.2f}", f"{row['up_floor_a_second']:.0f} / {row['down_floor_a_second']:.0f}",
              {True: "pass", False: "FAIL", None: ""}[row["bytes_hold"]], cell(row["up_link_bytes"], 0),
              cell(row["down_link_bytes"], 0), cell(row["sent_again"], 0)] for row in rows]
    return lines + table(["net", "exchange", "N", "up", "formula", "worst %", "down", "formula", "worst %",
                          "heartbeats a second", "", "link up", "link down", "sent again"], cells)


def text_tables(results):
    load = " ".join(f"{value:.1f}" for value in results["load"])
    lines = [f"{results['date']}, crema {results['version']}, {results['processors']} x {results['processor']}, load "
             f"at the end {load}, {results['seconds']:.0f} s."]
    if results["local"]:
        lines += local_table(results["local"])
    if results["nodes"]:
        lines += node_tables(results["nodes"], results["rate"], results["slower"])
    return "\n".join(lines + [""] * bool(results["notes"]) + [f"- {note}" for note in results["notes"]]) + "\n"
