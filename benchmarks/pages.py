"""Writes docs/*/performance.md and its picture, from the texts in pages_text/ and a results file.

python -m benchmarks.pages FILE
"""

import argparse
import re
from pathlib import Path

from benchmarks.chart import chart
from benchmarks.report import about, bars, beside_peers, failures, tables
from benchmarks.results import Results
from benchmarks.results_file import read

TEXTS = Path(__file__).parent / "pages_text"
DOCS = Path(__file__).parents[1] / "docs"
PICTURE = DOCS / "performance.svg"
PLACE = re.compile(r"\b(ABOUT|BARS|PEERS|FAILED|TABLES|COUNT|DISTURBED|LIMITED)\b")
NOTHING = "Not measured yet."
NONE_FAILED = "Every measurement succeeded."
CHINESE = {
    "all created, s": "全部创建, 秒",
    "all Running, s": "全部 Running, 秒",
    "slowest job created, s": "最慢的作业创建, 秒",
    "slowest job Running, s": "最慢的作业 Running, 秒",
    "Completed after the last pod, s": "最后一个 Pod 结束后到 Completed, 秒",
    "cleaned after the last pod, s": "最后一个 Pod 结束后到清理完, 秒",
    "first pod after the start, s": "启动后到第一个 Pod, 秒",
    "requests": "请求数",
    "operator CPU, s": "operator 的 CPU, 秒",
    "API server CPU, s": "API server 的 CPU, 秒",
    "fake node CPU, s": "模拟节点的 CPU, 秒",
    "operator memory at most, MiB": "operator 内存峰值, MiB",
    "memory with 10,000 own pods, MiB": "有 10,000 个自己的 Pod 时的内存, MiB",
    "runs": "次数",
    "floor": "下限",
    "ours": "本项目",
    "the pods alone": "只创建 Pod",
    "workload": "负载",
    "mode": "模式",
    "figure": "指标",
    "median": "中位数",
    "at most": "上限",
    "met": "达到",
    "MISSED": "未达到",
    "not measured": "未测",
    "repeat": "第几次",
    "what failed": "失败原因",
    "begun": "开始时间",
    "minutes": "用时, 分钟",
    "commit": "提交",
    "processor": "处理器",
    "memory, GiB": "内存, GiB",
    NOTHING: "尚未测量。",
    NONE_FAILED: "没有失败的测量。",
}


def contents(results: Results) -> dict[str, str]:
    """What stands in a page in place of which word."""
    numbers = {"COUNT": results.count, "DISTURBED": results.disturbed, "LIMITED": results.limited}
    counts = {word: str(number) for word, number in numbers.items()}
    if not results.abouts:
        return dict.fromkeys(("ABOUT", "BARS", "PEERS", "FAILED", "TABLES"), NOTHING) | counts
    told = {"ABOUT": about(results), "BARS": bars(results), "TABLES": tables(results)}
    told["PEERS"] = beside_peers(results)
    told["FAILED"] = failures(results) or NONE_FAILED
    return {word: text.strip() for word, text in told.items()} | counts


def in_chinese(text: str) -> str:
    """Whole lines, and whole cells of tables."""
    parts = re.split(r"( ?\| ?|\n)", text)
    return "".join(CHINESE.get(part, part) for part in parts)


def filled(text: str, contents: dict[str, str]) -> str:
    return PLACE.sub(lambda match: contents[match[0]], text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the pages about performance, and their picture.")
    parser.add_argument("results", type=Path)
    lines = read(parser.parse_args().results)
    PICTURE.write_text(chart(lines))
    english = contents(Results(lines))
    chinese = {word: in_chinese(text) for word, text in english.items()}
    for language, found in {"en": english, "zh_CN": chinese}.items():
        page = filled((TEXTS / f"{language}.md").read_text(), found)
        (DOCS / language / "performance.md").write_text(page)


if __name__ == "__main__":
    main()
