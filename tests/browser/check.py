"""What a page of kbench promises, seen in a real browser.

    check.py CHROMIUM PAGE ROWS

Each function is a promise; all are tried, and those that are broken are told. Content is looked at, not pixels.
"""

import sys

sys.dont_write_bytecode = True
from chromium import Chromium  # noqa: E402

# Text and what is behind it has at least this contrast (WCAG 2.2, success criterion 1.4.3).
CONTRAST = 4.5
# A page of 2,000 rows has no more elements than these; a browser lays them out within a second.
MOST_ELEMENTS = 90_000

# Luminance as WCAG defines it, of the first opaque colour behind each element.
CONTRASTS = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = rgba(getComputedStyle(e).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const selectors = ['body', 'header p', 'nav a', '.read', '.lead', '.verdicts li', '.tiles li', '.tiles b', '.tiles a',
    '.warning', '.card dt', '.matrix th a', '.matrix td a', '.matrix td small', '.matrix caption', '.family', '.advice',
    '.legend li', '.findings li', '.errors td', '.errors th a', '#table th', '#table td', '#table tbody th b', 'caption',
    '.good', '.bad', '.warn', '.quiet', 'pre', 'footer p', 'button', 'input', 'select', 'output', '#tip', '.key span'];
  const found = {};
  for (const selector of selectors) {
    for (const element of [...document.querySelectorAll(selector)].slice(0, 400)) {
      if (element.closest('svg, .bar')) continue;
      const style = getComputedStyle(element), under = behind(element), over = rgba(style.color);
      const share = over[3] / 255 * Number(style.opacity);
      const seen = over.map((c, i) => c * share + under[i] * (1 - share));
      const [a, b] = [light(seen), light(under)].sort((x, y) => y - x);
      found[selector] = Math.min(found[selector] ?? 99, (a + 0.05) / (b + 0.05));
    }
  }
  for (const text of [...document.querySelectorAll('svg text')].slice(0, 3000)) {
    const [a, b] = [light(rgba(getComputedStyle(text).fill)), light(behind(text))].sort((x, y) => y - x);
    const key = 'svg text.' + (text.getAttribute('class') || text.parentElement.getAttribute('class') || '');
    found[key] = Math.min(found[key] ?? 99, (a + 0.05) / (b + 0.05));
  }
  return found;
})()"""

TABLE = "document.querySelectorAll('#table tbody tr')"
SHOWN = f"[...{TABLE}].filter(row => !row.hidden)"


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def it_loads_without_a_complaint_or_a_request(browser, page, rows):
    browser.look()
    times = [browser.open(page) for _ in range(3)]
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    expect(not browser.complaints, f"the console says: {browser.complaints}")
    others = [url for url in browser.requests if not url.endswith(".html")]
    expect(not others, f"it asks for {others}")
    elements = browser.run("document.querySelectorAll('*').length")
    print(f"{rows} rows, {elements} elements, loaded in {', '.join(f'{t:.2f}' for t in times)} s")
    expect(elements < MOST_ELEMENTS, f"{elements} elements")


def every_row_is_in_the_table(browser, page, rows):
    browser.look()
    browser.open(page)
    expect(browser.run(f"{TABLE}.length") == rows, f"{browser.run(f'{TABLE}.length')} of {rows} rows")
    expect(browser.run("JSON.parse(document.querySelector('#data').textContent).rows.length") == rows, "data")


def names_are_inert(browser, page, rows):
    browser.look()
    browser.open(page)
    expect(not browser.dialogs, f"a name ran: {browser.dialogs}")
    expect(browser.run("typeof window.hacked") == "undefined", "a name ran")
    expect(browser.run("document.querySelectorAll('script').length") == 2, "a name became a script")
    expect(browser.run("document.querySelectorAll('img, iframe, object, b b').length") == 0, "a name became an element")
    expect(browser.run("document.body.textContent.includes('<script>window.hacked')"), "the name is not shown as text")


def rows_can_be_filtered(browser, page, rows):
    browser.look()
    browser.open(page)

    def filtered(field, value):
        browser.run(f"""(() => {{ const field = document.querySelector('{field}'); field.value = {value!r};
            field.dispatchEvent(new Event(field.tagName === 'INPUT' ? 'input' : 'change')); }})()""")
        browser.run("new Promise(done => setTimeout(done, 150))")
        shown = browser.run(f"{SHOWN}.length")
        told = browser.run("document.querySelector('#shown').textContent").replace(",", "")
        expect(told.split()[0] == str(shown), f"{shown} rows are shown, and it says `{told}`")
        return shown

    expect(browser.run("document.querySelector('#shown').getAttribute('aria-live')") == "polite", "nobody hears it")
    expect(filtered("#filter", "kernel_7/") == browser.run(
        f"[...{TABLE}].filter(r => r.textContent.includes('kernel_7/')).length") > 0, "by name")
    expect(filtered("#filter", "no such row") == 0, "by a name that is none")
    expect(filtered("#filter", "") == rows, "by nothing")
    failed = filtered("#status", "failed")
    expect(0 < failed < rows, f"{failed} failed")
    text = browser.run(f"{SHOWN}.every(row => row.textContent.includes('failed'))")
    expect(text, "others than failed ones are shown")
    filtered("#status", "")
    faster = filtered("#judged", "faster")
    expect(0 < faster < rows, f"{faster} faster")


def rows_can_be_sorted(browser, page, rows):
    browser.look()
    browser.open(page)
    # A row without figures has its reason in their place.
    shown = f"[...{TABLE}].map(row => row.cells.length > 9 ? row.cells[4].textContent : null)"
    nanoseconds = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}

    def times():
        texts = [text.split() if text else None for text in browser.run(shown)]
        known = [float(text[0]) * nanoseconds[text[1]] if text else None for text in texts]
        figures = [time for time in known if time is not None]
        expect(known[:len(figures)] == figures, "rows without figures are not last")
        return figures

    head = "document.querySelector('th[data-key=time_ns]')"
    expect(browser.run(f"{head}.getAttribute('aria-sort')") is None, "sorted before anybody asked")
    browser.run(f"{head}.querySelector('button').click()")
    expect(browser.run(f"{head}.getAttribute('aria-sort')") == "ascending", "not ascending")
    expect(times() == sorted(times()) and len(times()) > 3, "times do not ascend")
    browser.run(f"{head}.querySelector('button').click()")
    expect(browser.run(f"{head}.getAttribute('aria-sort')") == "descending", "not descending")
    expect(times() == sorted(times(), reverse=True), "times do not descend")
    expect(browser.run(f"{TABLE}.length") == rows, "rows are lost")


def points_can_be_asked_by_keyboard(browser, page, rows):
    browser.look()
    browser.open(page)
    browser.run("document.querySelector('details.kernel').open = true")
    tip = "document.querySelector('#tip')"
    plot = "document.querySelector('details.kernel svg[role=img]')"
    expect(browser.run(f"{plot}.querySelectorAll('.p title').length > 0"), "points have no title")
    browser.run(f"{plot}.focus()")
    expect(browser.run(f"!{tip}.hidden && {tip}.textContent.length > 5"), "focus shows no tooltip")
    first = browser.run(f"{tip}.textContent")
    browser.key("ArrowRight")
    expect(browser.run(f"{tip}.textContent") != first, "an arrow key leads to no other point")
    browser.key("Escape")
    expect(browser.run(f"{tip}.hidden"), "Escape does not hide it")
    browser.run("document.querySelector('.matrix td a').focus()")
    expect(browser.run(f"!{tip}.hidden && {tip}.textContent.length > 5"), "a cell of the matrix shows none")


def text_has_contrast(browser, page, rows):
    papers = set()
    for scheme in ["light", "dark"]:
        browser.look(scheme)
        browser.open(page)
        papers.add(browser.run("getComputedStyle(document.body).backgroundColor"))
        browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        found = browser.run(CONTRASTS)
        expect(len(found) > 20, f"only {found} were looked at")
        faint = {what: round(contrast, 2) for what, contrast in found.items() if contrast < CONTRAST}
        expect(not faint, f"{scheme}: {faint}")
    expect(len(papers) == 2, "both themes are the same")


def a_phone_scrolls_only_down(browser, page, rows):
    browser.look(width=360, height=740)
    browser.open(page)
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    width = browser.run("document.documentElement.scrollWidth")
    expect(width <= 360, f"the page is {width} wide")
    unreachable = browser.run("""[...document.querySelectorAll('.scroll')]
        .filter(e => e.tabIndex !== 0 || e.getAttribute('role') !== 'region' || !e.getAttribute('aria-label')).length""")
    expect(unreachable == 0, f"{unreachable} wide tables cannot be reached by keyboard")


def paper_has_no_controls(browser, page, rows):
    browser.look(media="print")
    browser.open(page)
    seen = browser.run("""[...document.querySelectorAll('.controls, nav, .skip, #tip')]
        .filter(e => e.getClientRects().length).length""")
    expect(seen == 0, f"{seen} controls on paper")
    cut = browser.run("getComputedStyle(document.querySelector('.tall')).overflow")
    expect(cut == "visible", "the table is cut off")


def it_says_everything_without_its_script(browser, page, rows):
    browser.look(script=False)
    browser.open(page)
    browser.look(script=True)
    expect(browser.run(f"{TABLE}.length") == rows, "rows are missing")
    expect(browser.run("""[...document.querySelectorAll('.controls')]
        .every(e => !e.getClientRects().length)"""), "controls that do nothing are shown")
    expect(browser.run("document.querySelectorAll('#table th button').length") == 0, "the script ran")
    expect(browser.run("document.querySelectorAll('.p title').length > 0"), "points have no titles")


def it_is_built_for_a_screen_reader(browser, page, rows):
    browser.look()
    browser.open(page)
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    levels = browser.run("[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map(h => Number(h.tagName[1]))")
    expect(levels[0] == 1 and levels.count(1) == 1, "there is not one first heading")
    jumps = [pair for pair in zip(levels, levels[1:]) if pair[1] > pair[0] + 1]
    expect(not jumps, f"headings jump: {jumps[:3]}")
    for landmark in ["header", "nav[aria-label]", "main", "footer", "a.skip[href='#main']", "html[lang=en]"]:
        expect(browser.run(f"document.querySelectorAll(\"{landmark}\").length") == 1, f"no {landmark}")
    expect(browser.run("""[...document.querySelectorAll('svg')].every(svg => svg.getAttribute('aria-hidden') === 'true' ||
        (svg.getAttribute('role') === 'img' && svg.querySelector(':scope > title')?.textContent &&
         svg.querySelector(':scope > desc')?.textContent))"""), "an SVG has no name or no description")
    expect(browser.run("""[...document.querySelectorAll('table')].every(table => table.caption &&
        [...table.querySelectorAll('th')].every(th => th.scope))"""), "a table has no caption, or a heading no scope")
    expect(browser.run("""[...document.querySelectorAll('a[href^="#"]')]
        .every(a => document.getElementById(a.getAttribute('href').slice(1)))"""), "a link leads nowhere")
    browser.run("document.body.focus()")
    browser.key("Tab")
    expect(browser.run("document.activeElement.className") == "skip", "the skip link is not first")


def a_link_unfolds_its_kernel(browser, page, rows):
    browser.look()
    browser.open(page)
    browser.run("document.querySelector('.matrix td a').click()")
    browser.run("new Promise(done => setTimeout(done, 300))")
    expect(browser.run("document.querySelector('details.kernel').open"), "it stays folded")


PROMISES = [
    it_loads_without_a_complaint_or_a_request,
    every_row_is_in_the_table,
    names_are_inert,
    rows_can_be_filtered,
    rows_can_be_sorted,
    points_can_be_asked_by_keyboard,
    text_has_contrast,
    a_phone_scrolls_only_down,
    paper_has_no_controls,
    it_says_everything_without_its_script,
    it_is_built_for_a_screen_reader,
    a_link_unfolds_its_kernel,
]


def main(executable, page, rows):
    broken = 0
    with Chromium(executable) as browser:
        for promise in PROMISES:
            name = promise.__name__.replace("_", " ")
            try:
                promise(browser, page, int(rows))
                print(f"kept: {name}")
            except AssertionError as error:
                broken += 1
                print(f"BROKEN: {name}: {error}")
    return broken


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 100))
