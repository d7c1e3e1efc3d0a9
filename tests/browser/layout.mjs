/** Checks that nothing on a screen is cut off, in every width and in both color schemes. */
import { eventually } from './booth.mjs';

/** The sizes of a phone, a tablet, a laptop, a screen and a wall. */
export const SIZES = [
  [390, 844],
  [768, 1024],
  [1440, 900],
  [1920, 1080],
  [3840, 2160],
];

/**
 * Returns the texts in the selected part of the page whose font is smaller than this number of pixels on a screen of
 * height 1080.
 */
export function smallTexts(page, selector, least) {
  return page.evaluate(
    ([selector, least]) => {
      const root = document.querySelector(selector) ?? document.body;
      const elements = [...root.querySelectorAll('*')].filter((element) => {
        const { width, height } = element.getBoundingClientRect();
        const hasText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
        return hasText && width > 1 && height > 1; // otherwise it is for screen readers
      });
      const size = (element) => (parseFloat(getComputedStyle(element).fontSize) * 1080) / window.innerHeight;
      return elements
        .filter((element) => size(element) < least - 0.01)
        .map((element) => `${size(element).toFixed(1)} px: ${element.textContent.trim().slice(0, 60)}`);
    },
    [selector, least]
  );
}

/**
 * Returns a sentence for everything in the selected part of the page that is cut off, overlaps or cannot be reached:
 * text that a box without a scroll bar hides, unless it ends in an ellipsis and its whole is in a title; text on text;
 * controls outside the window; a page, or a box other than a table's, that scrolls sideways.
 */
export function cuts(page, selector) {
  return page.evaluate((selector) => {
    const SLACK = 1.5; // pixels, for rounding
    const found = new Set();
    const root = document.querySelector(selector) ?? document.body;
    const page = document.scrollingElement;
    if (page.scrollWidth > page.clientWidth) {
      found.add(`the page is ${page.scrollWidth - page.clientWidth} px wider than the window`);
    }
    const styles = new Map();
    const styleOf = (element) => {
      if (!styles.has(element)) {
        styles.set(element, getComputedStyle(element));
      }
      return styles.get(element);
    };
    const name = (text) => `“${text.trim().replace(/\s+/g, ' ').slice(0, 60)}”`;
    const hides = (overflow) => overflow === 'hidden' || overflow === 'clip';
    const scrolls = (overflow) => overflow === 'auto' || overflow === 'scroll';
    const isFor = (element) => element.matches('[tabindex="0"], [role="grid"], [role="table"], textarea, pre');

    /** The part of a rectangle that the boxes around an element show, and the box that hides the rest. */
    const shown = (element, rect) => {
      let { left, right, top, bottom } = rect;
      let fault;
      let reachable = false; // to the side, by scrolling
      for (let box = element; box && box !== document.documentElement; box = box.parentElement) {
        const style = styleOf(box);
        const { left: l, right: r, top: t, bottom: b } = box.getBoundingClientRect();
        if (scrolls(style.overflowX) && (right > r + SLACK || left < l - SLACK)) {
          reachable = true;
        }
        if (hides(style.overflowX) && (right > r + SLACK || left < l - SLACK) && !reachable) {
          const whole = style.textOverflow === 'ellipsis' && (box.title || element.closest('[title]'));
          fault ??= whole ? undefined : 'to the side';
        }
        if (hides(style.overflowY) && (bottom > b + SLACK || top < t - SLACK) && !scrolls(style.overflowY)) {
          fault ??= 'above or below';
        }
        if (style.overflowX !== 'visible' || style.overflowY !== 'visible') {
          [left, right] = [Math.max(left, l), Math.min(right, r)];
          [top, bottom] = [Math.max(top, t), Math.min(bottom, b)];
        }
        if (left >= right || top >= bottom) {
          break;
        }
        if (style.position === 'fixed') {
          break;
        }
      }
      if (!reachable && (right > innerWidth + SLACK || left < -SLACK)) {
        fault ??= 'by the window';
      }
      return { fault, box: { left, right, top, bottom } };
    };

    /** Whether it is visible: neither text for screen readers only, nor above the window's top. */
    const seen = (element) => {
      if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) {
        return false;
      }
      for (let box = element; box && box !== root; box = box.parentElement) {
        const style = styleOf(box);
        if (style.clipPath !== 'none' || style.clip !== 'auto') {
          return false;
        }
        if (style.position === 'absolute' && box.getBoundingClientRect().bottom <= 0 && scrollY === 0) {
          return false;
        }
      }
      return true;
    };
    /** Sticky and floating elements cover those that scroll below them. */
    const floats = (element) => {
      for (let box = element; box && box !== root; box = box.parentElement) {
        if (['sticky', 'fixed'].includes(styleOf(box).position)) {
          return true;
        }
      }
      return false;
    };

    const words = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, (node) =>
      node.textContent.trim() && node.parentElement && !node.parentElement.closest('script, style, noscript, title')
        ? NodeFilter.FILTER_ACCEPT
        : NodeFilter.FILTER_REJECT
    );
    const range = document.createRange();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!seen(element)) {
        continue;
      }
      range.selectNodeContents(node);
      const above = floats(element);
      for (const rect of range.getClientRects()) {
        if (rect.width < 1 || rect.height < 1) {
          continue;
        }
        // A line's box is higher than its letters.
        const room = rect.height / 5;
        const letters = { left: rect.left, right: rect.right, top: rect.top + room, bottom: rect.bottom - room };
        const { fault, box } = shown(element, letters);
        if (fault) {
          found.add(`${name(node.textContent)} is cut ${fault}`);
        }
        if (!above && box.right > box.left && box.bottom > box.top) {
          words.push({ element, text: node.textContent, ...box });
        }
      }
    }

    // Texts overlap where a fifth of the lower line is covered.
    words.sort((a, b) => a.top - b.top);
    words.forEach((one, i) => {
      for (const other of words.slice(i + 1)) {
        if (other.top >= one.bottom) {
          break;
        }
        const tall = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
        const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const line = Math.min(one.bottom - one.top, other.bottom - other.top);
        if (one.element !== other.element && wide > 2 && tall > line / 5) {
          found.add(`${name(one.text)} and ${name(other.text)} overlap`);
        }
      }
    });

    for (const control of root.querySelectorAll('button, a[href], input, select, textarea, [role="slider"]')) {
      const rect = control.getBoundingClientRect();
      if (seen(control) && rect.width > 1 && rect.height > 1) {
        const { fault } = shown(control, rect);
        if (fault && fault !== 'above or below') {
          const label = control.getAttribute('aria-label') || control.textContent || control.tagName;
          found.add(`the control ${name(label)} is cut ${fault}`);
        }
      }
    }

    for (const box of root.querySelectorAll('*')) {
      const tooWide = box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0;
      if (
        tooWide &&
        scrolls(styleOf(box).overflowX) &&
        seen(box) &&
        !isFor(box) &&
        !box.querySelector('[role="grid"]')
      ) {
        found.add(`a box with ${name(box.textContent)} scrolls to the side, and no key reaches it`);
      }
    }
    return [...found];
  }, selector);
}

/** Returns what is cut in a part of the page, once the layout is stable: a resized part may need a moment. */
export async function lastingCuts(page, selector) {
  let last = [];
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  await eventually('nothing is cut', async () => (last = await cuts(page, selector)).length === 0, {
    within: 20_000,
  }).catch(() => undefined);
  return last;
}
