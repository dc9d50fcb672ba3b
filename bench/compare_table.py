"""How the rows of compare_pytorch.py look on a terminal and in docs/performance.md."""

# Key of the row, heading, digits after the point.
COLUMNS = [
    ("crema_ms", "crema ms", 2), ("pytorch_ms", "PyTorch ms", 2), ("pytorch_ratio", "ratio", 2),
    ("onnx_ms", "ONNX RT ms", 2), ("onnx_ratio", "ratio", 2),
    ("crema_limit_ms", "limit ms", 2), ("times_limit", "times limit", 2),
    ("crema_mb", "crema MB", 0), ("pytorch_mb", "PyTorch MB", 0), ("onnx_mb", "ONNX RT MB", 0),
]


def number(row, key, digits, missing="-"):
    return f"{row[key]:,.{digits}f}" if key in row else missing


# Of nets whose files say it: places of a sequence x sequences.
SEQUENCES = {"lstm": "20 x 20", "char_transformer": "64 x 32"}


def net_label(row):
    return f"{row['net']} ({row['batch'] or SEQUENCES[row['net']]})"


def print_row(row, first):
    if first:
        print(f"{'net (batch)':<27}{'mode':<11}{'precision':<11}{'threads':>7}"
              + "".join(f"{heading:>{len(heading) + 2}}" for _, heading, _ in COLUMNS))
    print(f"{net_label(row):<27}{row['mode']:<11}{row['precision']:<11}{row['threads']:>7}"
          + "".join(f"{number(row, key, digits):>{len(heading) + 2}}" for key, heading, digits in COLUMNS), flush=True)
    if "crema_error" in row:
        print(f"  crema: {row['crema_error']}", flush=True)


def markdown_table(rows, about):
    """Columns that no row has are left out."""
    columns = [column for column in COLUMNS if any(column[0] in row for row in rows)]
    versions = about["versions"]
    peers = f"PyTorch {versions['pytorch']}"
    if versions["onnx"]:
        peers += f", ONNX Runtime {versions['onnx']}"
    rounds = "one round" if about["rounds"] == 1 else f"medians of {about['rounds']} rounds"
    machine = f"{about['processor']}, {about['cores']} cores"
    lines = [f"{about['date']}, {machine}; {peers}; {rounds}.",
             "A ratio is the other side's time over crema's; the limit is the time of the net's operations",
             "at the rate of a large matrix product.", ""]
    headings = ["net (batch)", "mode", "precision", "threads"] + [heading for _, heading, _ in columns]
    lines += ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    for row in rows:
        cells = [net_label(row), row["mode"], row["precision"], str(row["threads"])]
        lines.append("| " + " | ".join(cells + [number(row, key, digits, "") for key, _, digits in columns]) + " |")
    return "\n".join(lines) + "\n"
