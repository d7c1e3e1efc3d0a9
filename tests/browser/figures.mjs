/** Reads the figures that a screen shows, with the names of the places at which they stand. */

/**
 * Runs in the page. Returns each visible text with a digit: its words, and its place, which is the names of all that
 * surrounds it, the outermost first: regions, tables, groups of columns, columns, rows, and terms.
 */
export function collect() {
  const text = (element) => (element?.innerText ?? element?.textContent ?? '').replace(/\s+/g, ' ').trim();
  const nameOf = (element) =>
    element.getAttribute('aria-label') ??
    text(document.getElementById(element.getAttribute('aria-labelledby') ?? '')) ??
    '';

  /** The headings of a cell: of its row, of its column, and of the group of the latter. */
  const headings = (cell) => {
    const row = cell.parentElement;
    const table = cell.closest('table');
    const names = [];
    const grid = [...(table.tHead?.rows ?? [])].map(() => []);
    [...(table.tHead?.rows ?? [])].forEach((head, y) => {
      let x = 0;
      for (const th of head.cells) {
        while (grid[y][x] !== undefined) {
          x += 1;
        }
        for (let dy = 0; dy < th.rowSpan && y + dy < grid.length; dy += 1) {
          for (let dx = 0; dx < th.colSpan; dx += 1) {
            grid[y + dy][x + dx] = th;
          }
        }
        x += th.colSpan;
      }
    });
    let x = 0;
    for (const before of row.cells) {
      if (before === cell) {
        break;
      }
      x += before.colSpan;
    }
    grid.forEach((line) => names.push(text(line[x])));
    const head = row.querySelector('th[scope="row"]') ?? row.cells[0];
    if (head !== cell) {
      names.push(text(head));
    }
    return [...new Set(names)];
  };

  const place = (element) => {
    const names = [];
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      if (at.matches('td, th') && !at.closest('thead')) {
        names.unshift(...headings(at));
      } else if (at.matches('table')) {
        names.unshift(text(at.caption) || nameOf(at));
      } else if (at.matches('dd')) {
        let term = at.previousElementSibling;
        while (term && !term.matches('dt')) {
          term = term.previousElementSibling;
        }
        names.unshift(text(term));
      } else if (at.matches('li') && element !== at && at.firstElementChild !== element) {
        names.unshift(text(at.firstElementChild));
      } else if (at.matches('[aria-label], [aria-labelledby]') && !at.matches('table')) {
        names.unshift(nameOf(at));
      }
    }
    return names.filter(Boolean);
  };

  // Grafana's own panels have the name of a value before it, and not around it.
  let name;
  const inPanel = (block, shown) => {
    const before = block.closest('[data-viz-panel-key]:not(:has(table))') ? name : undefined;
    name = /^[A-Z]/.test(shown) ? shown : undefined;
    return before ? [before] : [];
  };

  const found = [];
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const block = node.parentElement?.closest('td, th, dd, dt, li > *, p, h1, h2, h3, figcaption, div, text, button');
    const shown =
      block?.checkVisibility({ visibilityProperty: true }) && !block.querySelector('table, ul, dl, section');
    if (!/\d/.test(node.data) || !shown || seen.has(block)) {
      continue;
    }
    seen.add(block);
    const named = inPanel(block, text(block));
    found.push({ place: [...place(block), ...named], text: text(block) });
  }
  return found;
}

/** Names of figures on screens, with their keys, the more specific ones first. */
const NAMES = [
  ['kv_achievable_ratio', /achievable/i],
  ['kv_predicted_ratio', /predicted/i],
  ['acceptance_rate', /acceptance|drafted tokens/i],
  ['tokens_per_step', /tokens per step/i],
  ['ttft', /\bTTFT\b|first token/i],
  ['tpot', /\bTPOT\b/i],
  ['itl', /\bITL\b/],
  ['latency', /end-to-end/i],
  ['output_tokens_per_second', /\btokens\/s$|\btokens\/s[ ,]|\bTOPS\b/i],
  ['requests_per_second', /\brequests\/s|\bRPS\b/i],
  ['kv_hit_ratio', /KV (cache )?hit|from cache/i],
  ['input_p95', /input tokens, p95/i],
  ['input_mean', /input tokens, mean/i],
  ['output_mean', /output tokens, mean/i],
  ['inflight', /^in flight$/i],
  ['queued', /^queued$/i],
  ['waiting', /^waiting$/i],
  ['queue_seconds', /^time in queue$/i],
  ['cache_use', /^KV cache in use$/i],
  ['routed', /^requests routed$/i],
  ['ok', /^requests$/i],
  ['errors', /^errors$/i],
  ['error_ratio', /error rate/i],
];

/** Parts of screens whose figures have the names of a lane's, and are of something else. */
const OTHERS =
  /^(Other routers|Why the modes cross|What if|Where the TTFT|Recorded hit rates|A conversation, turn by turn|Model)/;

/** Parts of screens whose live figures are those of the step; all others are of the last 60 s. */
const OF_STEP = /^(Live against baseline|Result|TTFT p95|Mean TTFT|Output tokens\/s|Both routers now|Lane \w+)$/;

/** Finds the innermost of the names that matches. */
function innermost(names, pattern) {
  return names.findLast((name) => pattern.test(name))?.match(pattern);
}

/** The column of recorded results that a name means. */
const MODES = [
  ['round_robin', /^(RR|Round-robin)\b/],
  ['kv', /^(KV|KV-aware)\b(?! (cache|hit))/],
];

const number = (digits) => Number(digits.replaceAll(',', ''));

/** The value that a text begins with, in the API's unit, and half of its last decimal. */
function valueOf({ place, text }) {
  const [, digits, unit] = text.match(/^(?:[A-Z]+ |Last: )?([\d,]+(?:\.\d+)?)(?: ?(ms|s|%|points))?(?![\d.])/) ?? [];
  if (digits === undefined) {
    return undefined;
  }
  const named = innermost(place, /, (ms|s|%)( derived)?$/)?.[1];
  const scale = { ms: 1000, '%': 100 }[unit ?? named] ?? 1;
  const decimals = digits.split('.')[1]?.length ?? 0;
  return { value: number(digits) / scale, half: 0.5 / 10 ** decimals / scale };
}

/** The size of a difference from a recorded value, in per cent: "43.8 % sooner", "−27.5 ms (−10.0 %)". */
function differenceOf({ text }) {
  const [, alone, within] = text.match(/^([\d,.]+) % (?:sooner|later|more|less)|\([−+]([\d,.]+) %\)/) ?? [];
  const digits = alone ?? within;
  return digits && { value: number(digits), half: 0.05, difference: true };
}

/**
 * Returns what a text is of: its figures, their statistic, and whose they are; none where it is no figure of a lane, a
 * worker, a turn number or a recorded result.
 */
export function classify(reading) {
  const { place, text } = reading;
  const names = [...place, text.replace(/^[\d,.]+ ?(ms|s|%)?/, '').trim()];
  const key = names
    .toReversed()
    .map((name) => NAMES.find(([, pattern]) => pattern.test(name))?.[0])
    .find(Boolean);
  if (
    !key ||
    place.some((name) => OTHERS.test(name)) ||
    /interval|improvement|pairing/i.test(place.at(-2) ?? '') ||
    /\?/.test(place.at(-1) ?? '')
  ) {
    return [];
  }
  const statistic = innermost(names, /\b(p50|p95|p99|mean)\b/i)?.[1].toLowerCase();
  const lane = innermost(place, /^(?:Lane|Workers of) (\w+)$/)?.[1] ?? 'main';
  const worker = innermost(place, /^dynamo-worker-[\w-]+$/)?.[0];
  const turn = /by turn/.test(place[0] ?? '') ? innermost(place, /^(?:Turn )?([1-5]|6\+)$/i)?.[1] : undefined;
  const level = /level by level$/.test(place[1] ?? '') ? parseInt(place.at(-1), 10) : undefined;
  const mode = MODES.find(([, pattern]) => names.some((name) => pattern.test(name)))?.[0];
  const live = !mode || /^(Live|Lane)\b/.test(place.at(-2) ?? '');
  const of = {
    key,
    statistic,
    lane,
    worker,
    turn,
    level,
    derived: names.some((name) => /derived/.test(name)),
    mode: live ? undefined : mode,
    pairs: place[0] === 'Turn by turn',
    step: OF_STEP.test(place.find((name, i) => name !== place[i + 1]) ?? '') && !/60 s/.test(names.join()),
  };
  const difference = differenceOf(reading);
  const value = text.startsWith(`${difference?.value} %`) ? undefined : valueOf(reading);
  return [value, difference].filter(Boolean).map((read) => ({ ...of, ...read }));
}

const TIMES = ['ttft', 'tpot', 'itl', 'latency'];

/** Returns the API's value of what a text is of; undefined where the API has none. */
export function known(of, { snapshot, twin }, baselines) {
  const { key, statistic, worker, turn, mode, level } = of;
  const lane = snapshot.lanes.find(({ name }) => name === of.lane);
  const timed = TIMES.includes(key);
  if (of.pairs) {
    const metric = twin?.metrics.find((one) => one.metric === (statistic === 'p95' ? `${key}_p95` : key));
    return metric?.[twin.a.mode === mode ? 'a' : 'b'];
  }
  if (level) {
    const { rows } = baselines.find(({ name }) => name === lane.baseline.name);
    const row = rows.find((one) => one.concurrency === level && one.mode === mode);
    const set = row?.[of.derived ? `${key}_derived` : key];
    return timed ? (statistic === 'mean' ? row?.ttft_mean : set?.[statistic]) : set;
  }
  if (worker) {
    return lane.cluster.workers.find(({ name }) => name === worker)?.[key === 'kv_hit_ratio' ? 'hit_ratio' : key];
  }
  if (turn) {
    const row = lane.ttft_by_turn.find((one) => one.turn === turn);
    return row?.[
      { ttft: statistic ?? 'p50', latency: `latency_${statistic}`, kv_hit_ratio: 'cached_ratio' }[key] ?? key
    ];
  }
  if (mode) {
    const column = lane.baseline.columns.find((one) => one.mode === mode);
    const found = timed ? (statistic === 'mean' ? column?.ttft_mean : column?.[key]?.[statistic]) : column?.[key];
    const percent = found?.improvement?.percent;
    return of.difference ? percent && Math.abs(percent) : found?.value;
  }
  if (timed) {
    return (of.step ? lane.baseline.live : lane.window.metrics)[key][statistic];
  }
  return of.step ? lane.baseline[`live_${key}`] : ofWindow(lane)[key];
}

/** The figures of a lane without percentiles, over the last 60 s, now, or since the start. */
function ofWindow({ window, kv, cluster, totals }) {
  return {
    requests_per_second: window.requests_per_second,
    output_tokens_per_second: window.output_tokens_per_second,
    error_ratio: window.error_ratio,
    kv_hit_ratio: kv.hit_ratio,
    kv_predicted_ratio: kv.predicted,
    kv_achievable_ratio: kv.achievable,
    acceptance_rate: cluster.speculation.acceptance,
    tokens_per_step: cluster.speculation.tokens_per_step,
    queued: cluster.queued,
    inflight: cluster.inflight,
    ok: totals.ok,
    errors: totals.errors,
  };
}

/**
 * Compares texts with what the API said at the same time: one differs if it is not between the API's values, rounded as
 * it is. Returns the texts whose figures agree, those of which one differs, and those that are of nothing in the API.
 */
export function compare(readings, moments, baselines) {
  const sorted = { agree: [], differ: [], others: [] };
  for (const reading of readings) {
    const found = classify(reading)
      .map((of) => ({
        ...of,
        values: moments.map((one) => known(of, one, baselines)).filter((one) => one !== undefined),
      }))
      .filter(({ values }) => values.length > 0);
    const off = found.filter(
      ({ value, half, values }) => Math.min(...values) - value > half || value - Math.max(...values) > half
    );
    const group = off.length > 0 ? 'differ' : found.length > 0 ? 'agree' : 'others';
    sorted[group].push({ ...reading, off });
  }
  return sorted;
}
