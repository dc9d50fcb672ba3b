"""How the rows of bench/gpu look on a terminal and in docs/performance.md."""
from compare_table import number

# Key of the row, heading, digits after the point.
COLUMNS = [
    ("crema_rate", "crema /s", 0), ("pytorch_rate", "PyTorch /s", 0), ("ratio", "ratio", 2),
    ("crema_mb", "crema MB", 0), ("pytorch_mb", "PyTorch MB", 0),
]


def progress(net, mode, precision, side, result):
    label = f"{net.label():<18}{mode:<11}{precision:<6}{side:<10}"
    if "error" in result:
        return label + result["error"]
    memory = result.get("mb")
    return (label + f"{result['rate']:>12,.1f} {net.unit} a second"
            + (f"{memory:>10,.0f} MB" if memory is not None else "") + f"   {result.get('how', '')}")


def machine_lines(about):
    versions = [f"driver {about['driver']}"] if about["driver"] else []
    versions += [f"crema {about['crema']}"]
    if about["crema_cuda"]:
        versions.append(f"its CUDA {about['crema_cuda']}, cuDNN {about['crema_cudnn']}")
    torch = about["pytorch"]
    if torch:
        versions.append(f"PyTorch {torch['version']}, its CUDA {torch.get('cuda')}, cuDNN {torch.get('cudnn')}")
    return [f"{about['date']}, {about['gpu']}; {'; '.join(versions)}."]


def markdown_table(rows, about):
    lines = machine_lines(about)
    memory = " and ".join(about["memory"]) or "not known"
    rounds = "one round" if about["rounds"] == 1 else f"medians of up to {about['rounds']} rounds"
    ways = "eager and compiled" if about["torch_compile"] else "eager"
    lines += [f"Images (of lstm: sequences of 20 words) a second, {rounds}, both sides in turn; a ratio is crema's",
              "rate over PyTorch's. Batches come from the host's memory on both sides. bf16 is PyTorch's autocast, in",
              f"inference its weights in bf16; f32 is without TF32. PyTorch is at the faster of plain and channels_last, {ways}.",
              f"Memory is the GPU's, of the whole process ({memory}).", ""]
    headings = ["net (batch)", "mode", "precision"] + [heading for _, heading, _ in COLUMNS] + ["PyTorch as", "rounds"]
    lines += ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    reached = [row for row in rows if row["measured"] or any(key.endswith("_error") for key in row)]
    for row in reached:
        cells = [row["label"], row["mode"], row["precision"]]
        cells += [number(row, key, digits, "") for key, _, digits in COLUMNS]
        lines.append("| " + " | ".join(cells + [row.get("pytorch_as", ""), str(row["measured"])]) + " |")
    notes = [f"- {row['label']}, {row['mode']}, {row['precision']}: {side}: {row[key]}"
             for row in reached for key, side in (("crema_error", "crema"), ("pytorch_error", "PyTorch"),
                                               ("compile_error", "torch.compile, eager instead"))
             if key in row]
    if len(reached) < len(rows):
        notes.append(f"- {len(rows) - len(reached)} rows were not reached in the time given.")
    return "\n".join(lines + ([""] + notes if notes else [])) + "\n"
