import { replaceEqualDeep } from '@tanstack/react-query';
import { BehaviorSubject, skip } from 'rxjs';

import { limits, type Conversation, type ConversationList } from '../../client';

/** The page size: the most that the API returns. */
export const PAGE = limits['conversations.limit'].max;

/** Reads a page of the list: the one behind a cursor, or the newest. */
type Load = (cursor?: string) => Promise<ConversationList>;

interface Rows {
  /** Newest first. */
  rows: Conversation[];
  more: boolean;
}

/**
 * The conversations of one filter, as far as they have been read, newest first. The first page is polled, the others
 * are read on request. react-query's infinite query would read all pages again: at ten thousand rows, 50 requests every
 * three seconds instead of one or two.
 */
export class PagedList {
  private readonly known = new BehaviorSubject<Rows>({ rows: [], more: false });
  /** The cursors behind rows, by their ids. A cursor is the place of its row, whatever is added or changes later. */
  private readonly cursors = new Map<string, string>();
  private reading?: Promise<void>;

  constructor(private readonly load: Load) {}

  /** The current rows. The object keeps its identity while nothing changes. */
  readonly get = () => this.known.value;

  /** Calls a listener with every change, until it is unsubscribed. */
  readonly subscribe = (listener: () => void) => {
    const subscription = this.known.pipe(skip(1)).subscribe(listener);
    return () => subscription.unsubscribe();
  };

  /** Reads the newest page, and the one with the row of an id if some of that page are still in progress. */
  async refresh(seen?: string): Promise<void> {
    const newest = await this.load();
    this.put(0, newest);
    const { rows } = this.known.value;
    const at = rows.findIndex(({ id }) => id === seen);
    const first = this.endOf(rows.slice(0, Math.max(0, at)));
    const isActive = rows.slice(first, first + PAGE).some(({ status }) => status === 'active');
    if (at >= newest.conversations.length && isActive) {
      this.put(first, await this.load(this.cursors.get(rows[first - 1].id)));
    }
  }

  /** Reads the page behind the last one. Concurrent calls share one request. */
  older(): Promise<void> {
    this.reading ??= this.readOlder().finally(() => (this.reading = undefined));
    return this.reading;
  }

  private async readOlder(): Promise<void> {
    const last = this.known.value.rows.at(-1);
    const cursor = last && this.cursors.get(last.id);
    if (cursor === undefined) {
      return;
    }
    const page = await this.load(cursor);
    const { rows } = this.known.value;
    if (rows.at(-1)?.id === last?.id) {
      this.put(rows.length, page); // otherwise the answer does not follow the last row any more
    }
  }

  /** Drops all but the newest two pages. */
  trim(): void {
    const { rows } = this.known.value;
    if (rows.length > 2 * PAGE) {
      const end = this.endOf(rows.slice(0, 2 * PAGE));
      rows.slice(end).forEach(({ id }) => this.cursors.delete(id));
      this.set(rows.slice(0, end));
    }
  }

  /** The number of rows up to the last one with a cursor. */
  private endOf(rows: Conversation[]): number {
    const behind = [...rows].reverse().findIndex(({ id }) => this.cursors.has(id));
    return behind < 0 ? 0 : rows.length - behind;
  }

  /**
   * Replaces the rows from an index on by a page, and keeps those behind it, unless conversations are missing between
   * the two. Unchanged rows keep their identity.
   */
  private put(first: number, { conversations, next_cursor: cursor }: ConversationList) {
    const { rows } = this.known.value;
    const before = new Map(rows.map((row) => [row.id, row]));
    const page = conversations.map((row) => replaceEqualDeep(before.get(row.id), row));
    const head = [...rows.slice(0, first), ...page];
    const last = head.at(-1);
    if (last === undefined || cursor === undefined) {
      this.cursors.delete(last?.id ?? '');
      this.set(head);
      return;
    }
    this.cursors.set(last.id, cursor);
    const rest = rows.slice(first);
    const behind = rest.findIndex((row) => orderOf(row) < orderOf(last));
    this.set(behind > 0 ? [...head, ...rest.slice(behind)] : head);
  }

  private set(rows: Conversation[]) {
    const before = this.known.value;
    const last = rows.at(-1);
    const more = last !== undefined && this.cursors.has(last.id);
    const same =
      more === before.more && rows.length === before.rows.length && rows.every((r, i) => r === before.rows[i]);
    if (!same) {
      this.known.next({ rows, more });
    }
  }
}

/** The sort key of the list: a later conversation has the greater key. */
export function orderOf({ started, id }: Pick<Conversation, 'started' | 'id'>): string {
  const [, second, fraction = ''] = /^(.{19})\.?(\d*)/.exec(started) ?? ['', started];
  return `${second}.${fraction.padEnd(9, '0')} ${id}`;
}
