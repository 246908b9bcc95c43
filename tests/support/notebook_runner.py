"""Runs the code cells of a notebook one after another in one namespace. Standard library only.

    python3 tests/support/notebook_runner.py NOTEBOOK.ipynb    # writes the outputs into the file
"""

import ast
import contextlib
import io
import json
import pathlib
import sys


def _outputs(source, count, namespace):
    """The outputs that a notebook shows for a cell: the printed text, and the value of its last
    expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"<cell {count}>", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"<cell {count}>", "eval"), namespace)
    outputs = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream",
                        "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        outputs.append({"data": {"text/plain": repr(value).splitlines(keepends=True)},
                        "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs


def run(notebook, namespace=None):
    """Executes the cells. Returns the notebook with their outputs, and the resulting namespace."""
    namespace = {"__name__": "__main__"} if namespace is None else namespace
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        cell["execution_count"] = count
        cell["outputs"] = _outputs("".join(cell["source"]), count, namespace)
    return notebook, namespace


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1])
    done, _ = run(json.loads(path.read_text()))
    path.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n")
