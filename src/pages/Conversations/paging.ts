import { replaceEqualDeep } from '@tanstack/react-query';

import type { Conversation, ConversationList } from '../../client';

/** A part of the list that one request returns. */
export interface Page {
  /** The cursor to request it with; undefined for the newest. */
  cursor?: string;
  /** Newest first. */
  rows: Conversation[];
  /** The cursor of the next page; undefined where there is none. */
  next?: string;
}

/**
 * Returns the pages after the newest conversations have been read again. Rows that no longer fit the first page move to
 * the second, and to a new second one when that is full. Where the newest rows do not overlap with the known ones, or
 * are the whole list, only they remain.
 */
export function splitHead(pages: Page[], newest: ConversationList, size: number): Page[] {
  const [head, ...rest] = pages;
  const cursor = newest.next_cursor;
  const rows = keepIdentity(head?.rows ?? [], newest.conversations);
  const fresh: Page = { rows, next: cursor };
  const pushed = head && cursor !== undefined ? behind(head.rows, rows) : undefined;
  if (!pushed) {
    return [fresh];
  }
  const [second, ...others] = rest.map((page) => without(page, rows));
  if (second && pushed.length + second.rows.length <= Math.max(size, second.rows.length)) {
    return [fresh, { ...second, cursor, rows: [...pushed, ...second.rows] }, ...others];
  }
  if (pushed.length === 0) {
    return [fresh];
  }
  const between = { cursor, rows: pushed, next: second ? second.cursor : head.next };
  return second ? [fresh, between, second, ...others] : [fresh, between];
}

/** Replaces a page by its new rows, without the rows that other pages have. */
export function mergePage(page: Page, again: ConversationList, pages: Page[]): Page {
  const elsewhere = pages.filter((p) => p !== page).flatMap((p) => p.rows);
  const fresh = without({ rows: again.conversations }, elsewhere);
  const rows = keepIdentity(page.rows, fresh.rows);
  const rest = again.next_cursor === undefined ? [] : (behind(page.rows, rows) ?? []);
  return { ...page, rows: [...rows, ...rest] };
}

/** Returns a page without some rows. */
export function without(page: Page, rows: Conversation[]): Page {
  const ids = new Set(rows.map(({ id }) => id));
  return page.rows.some(({ id }) => ids.has(id)) ? { ...page, rows: page.rows.filter(({ id }) => !ids.has(id)) } : page;
}

/** Returns the old rows that are older than all new ones; undefined where the two have no row in common. */
function behind(old: Conversation[], rows: Conversation[]): Conversation[] | undefined {
  const ids = new Set(rows.map(({ id }) => id));
  let last = old.length - 1;
  while (last >= 0 && !ids.has(old[last].id)) {
    last--;
  }
  return last < 0 ? undefined : old.slice(last + 1);
}

/** Returns the new rows. Unchanged rows keep their identity. */
function keepIdentity(old: Conversation[], rows: Conversation[]): Conversation[] {
  const before = new Map(old.map((row) => [row.id, row]));
  return rows.map((row) => replaceEqualDeep(before.get(row.id), row));
}
