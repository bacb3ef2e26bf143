'use strict';
// The page says everything without this script; it adds filters, sorting, folding and quick tooltips.
const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Tooltips: of whatever has a title, by pointer, by focus, and in plots by the arrow keys.
const tip = $('#tip');
const titled = '.p, .claim, .cache, [title], [data-tip]';
function textOf(element) {
  if (!element.dataset.tip) {
    const title = $('title', element);
    element.dataset.tip = title ? title.textContent : element.getAttribute('title') || '';
    if (title) title.remove();
    element.removeAttribute('title');
  }
  return element.dataset.tip;
}
let asked;
function show(element) {
  const text = textOf(element);
  if (!text) return hide();
  asked = element;
  tip.textContent = text;
  tip.hidden = false;
  stand();
}
// The tooltip is above what it is about, or below where there is no room.
function stand() {
  if (tip.hidden) return;
  const at = asked.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const left = at.left + at.width / 2 - own.width / 2;
  tip.style.left = Math.max(4, Math.min(left, document.documentElement.clientWidth - own.width - 4)) + 'px';
  tip.style.top = (at.top > own.height + 12 ? at.top - own.height - 8 : at.bottom + 8) + 'px';
}
function hide() {
  tip.hidden = true;
  all('.p.at').forEach(point => point.classList.remove('at'));
}
document.addEventListener('pointerover', event => {
  const element = event.target.closest(titled);
  if (element && !element.closest('.legend')) show(element); else hide();
});
document.addEventListener('focusin', event => {
  hide();
  const element = event.target.closest('[title], [data-tip]');
  if (event.target.matches('svg[role=img]')) walk(event.target, 1); else if (element) show(element);
});
document.addEventListener('focusout', hide);
document.addEventListener('scroll', stand, { passive: true, capture: true });
document.addEventListener('keydown', event => {
  if (event.key === 'Escape') return hide();
  const svg = event.target.closest('svg[role=img]');
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (svg && step) {
    event.preventDefault();
    walk(svg, step);
  }
});
// The next point of a plot that has the focus.
function walk(svg, step) {
  const points = all('.p', svg);
  if (!points.length) return;
  const last = points.findIndex(point => point.classList.contains('at'));
  const next = last < 0 ? (step > 0 ? 0 : points.length - 1) : (last + step + points.length) % points.length;
  hide();
  points[next].classList.add('at');
  show(points[next]);
}
all('svg[role=img]').filter(svg => $('.p', svg)).forEach(svg => svg.tabIndex = 0);

// The table. Its rows are in the order of the data.
let figures;
function read() {
  if (!figures) {
    const { columns, rows } = JSON.parse($('#data').textContent);
    figures = rows.map(row => Object.fromEntries(columns.map((column, index) => [column, row[index]])));
  }
  return figures;
}
const table = $('#table'), body = table.tBodies[0];
const rows = [...body.rows];
const filters = { name: $('#filter'), status: $('#status'), verdict: $('#judged') };
function matches(row, wanted) {
  const status = row.status.split(':')[0];
  return wanted.words.every(word => row.text.includes(word)) &&
    (!wanted.status || status === wanted.status || (wanted.status === 'unstable' && row.unstable === true)) &&
    (!wanted.verdict || (row.verdict || '').endsWith(wanted.verdict));
}
function filter() {
  const wanted = {
    words: filters.name.value.toLowerCase().split(/\s+/).filter(Boolean),
    status: filters.status.value,
    verdict: filters.verdict.value,
  };
  let shown = 0;
  read().forEach((row, index) => {
    row.text ??= `${row.name} ${row.mode} ${row.status}`.toLowerCase();
    const fits = matches(row, wanted);
    rows[index].hidden = !fits;
    shown += fits;
  });
  $('#shown').textContent = `${shown.toLocaleString('en')} ${shown === 1 ? 'row' : 'rows'} shown`;
}
let pending;
filters.name.addEventListener('input', () => {
  clearTimeout(pending);
  pending = setTimeout(filter, 80);
});
filters.status.addEventListener('change', filter);
filters.verdict.addEventListener('change', filter);
$('#rows form').addEventListener('submit', event => event.preventDefault());

// Rows without a figure come last, whatever the direction.
function sort(head, key) {
  const down = head.getAttribute('aria-sort') === 'ascending';
  all('th[aria-sort]', table).forEach(other => other.removeAttribute('aria-sort'));
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const known = read();
  const order = rows.map((_, index) => index).sort((a, b) => {
    const [x, y] = [known[a][key], known[b][key]];
    if (x == null || y == null) return (x == null) - (y == null) || a - b;
    const sign = typeof x === 'number' ? x - y : x.localeCompare(y, 'en', { numeric: true });
    return (down ? -sign : sign) || a - b;
  });
  body.append(...order.map(index => rows[index]));
}
for (const head of all('th[data-key]', table)) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = head.dataset.title = head.textContent;
  head.replaceChildren(button);
  button.addEventListener('click', () => sort(head, head.dataset.key));
}

// Folding, copying, saving.
for (const button of all('[data-fold]')) {
  const open = button.dataset.fold === 'open';
  button.addEventListener('click', () => all('details.kernel').forEach(kernel => kernel.open = open));
}
$('#copy').addEventListener('click', () => navigator.clipboard?.writeText($('#again').textContent));
$('#download').addEventListener('click', () => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([$('#data').textContent], { type: 'application/json' }));
  link.download = 'kbench-rows.json';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
});
all('.controls').forEach(controls => controls.hidden = false);
