import { BehaviorSubject, skip } from 'rxjs';

import { limits, type Conversation, type ConversationList } from '../../client';
import { mergePage, splitHead, without, type Page } from './paging';

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
 * The conversations of one filter, as far as they have been read, in pages, newest first. The first page is polled, the
 * others are read on request. react-query's infinite query would read all pages again: at ten thousand rows, 50
 * requests every three seconds instead of one or two.
 */
export class PagedList {
  private pages: Page[] = [];
  private readonly known = new BehaviorSubject<Rows>({ rows: [], more: false });
  private reading?: Promise<void>;

  constructor(private readonly load: Load) {}

  /** The current rows. The object keeps its identity while nothing changes. */
  readonly get = () => this.known.value;

  /** Calls a listener with every change, until it is unsubscribed. */
  readonly subscribe = (listener: () => void) => {
    const subscription = this.known.pipe(skip(1)).subscribe(listener);
    return () => subscription.unsubscribe();
  };

  /**
   * Reads the newest page, and the page that contains the row with the given id if some of it are still in progress.
   */
  async refresh(seen?: string): Promise<void> {
    const newest = await this.load();
    this.set(splitHead(this.pages, newest, PAGE));
    const page = this.pages.slice(1).find(({ rows }) => rows.some(({ id }) => id === seen));
    if (page?.rows.some(({ status }) => status === 'active')) {
      const again = await this.load(page.cursor);
      this.set(this.pages.map((p) => (p === page ? mergePage(p, again, this.pages) : p)));
    }
  }

  /** Reads the page behind the last one. Concurrent calls share one request. */
  older(): Promise<void> {
    this.reading ??= this.readOlder().finally(() => (this.reading = undefined));
    return this.reading;
  }

  private async readOlder(): Promise<void> {
    const cursor = this.last()?.next;
    if (cursor === undefined) {
      return;
    }
    const { conversations, next_cursor } = await this.load(cursor);
    if (this.last()?.next !== cursor) {
      return; // the last page has changed: the answer does not follow it
    }
    this.set([...this.pages, without({ cursor, rows: conversations, next: next_cursor }, this.known.value.rows)]);
  }

  /** Drops all but the newest two pages. */
  trim(): void {
    if (this.pages.length > 2) {
      this.set(this.pages.slice(0, 2));
    }
  }

  private last(): Page | undefined {
    return this.pages[this.pages.length - 1];
  }

  private set(pages: Page[]) {
    this.pages = pages;
    const before = this.known.value;
    const rows = pages.flatMap((page) => page.rows);
    const more = this.last()?.next !== undefined;
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
