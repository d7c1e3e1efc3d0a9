import { BehaviorSubject, skip } from 'rxjs';

import { limits, type Conversation, type ConversationList } from '../../client';
import { mergePage, splitHead, without, type Page } from './paging';

/** How many conversations are asked for at once: the most that the API gives. */
export const PAGE = limits['conversations.limit'].max;

/** Reads a page of the list: what begins behind a cursor, or the newest. */
type Load = (cursor?: string) => Promise<ConversationList>;

/** What the list has. */
interface Rows {
  /** Newest first. */
  rows: Conversation[];
  /** Whether there are older ones. */
  more: boolean;
}

/**
 * The conversations of one filter, as far as they have been read: pages, newest
 * first, of which the first is read again and again, and the others on request.
 * react-query's infinite query would read all of them again: at ten thousand rows
 * 50 questions every three seconds instead of one or two.
 */
export class PagedList {
  private pages: Page[] = [];
  private readonly known = new BehaviorSubject<Rows>({ rows: [], more: false });
  private reading?: Promise<void>;

  constructor(private readonly load: Load) {}

  /** What is known now. It is the same object for as long as nothing changes. */
  readonly get = () => this.known.value;

  /** Calls a listener with every change, until it is unsubscribed. */
  readonly subscribe = (listener: () => void) => {
    const subscription = this.known.pipe(skip(1)).subscribe(listener);
    return () => subscription.unsubscribe();
  };

  /** Reads the newest, and the page in which the row with the given id is, if some on it are still in progress. */
  async refresh(seen?: string): Promise<void> {
    const newest = await this.load();
    this.set(splitHead(this.pages, newest, PAGE));
    const page = this.pages.slice(1).find(({ rows }) => rows.some(({ id }) => id === seen));
    if (page?.rows.some(({ status }) => status === 'active')) {
      const again = await this.load(page.cursor);
      this.set(this.pages.map((p) => (p === page ? mergePage(p, again, this.pages) : p)));
    }
  }

  /** Reads the page behind the last one; who asks meanwhile waits for the same. */
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
      return; // the last page is another by now: the answer does not belong behind it
    }
    this.set([...this.pages, without({ cursor, rows: conversations, next: next_cursor }, this.known.value.rows)]);
  }

  /** Forgets all but the newest two pages. */
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

/** What puts conversations into the list's order: the later in the alphabet, the newer. */
export function orderOf({ started, id }: Pick<Conversation, 'started' | 'id'>): string {
  const [, second, fraction = ''] = /^(.{19})\.?(\d*)/.exec(started) ?? ['', started];
  return `${second}.${fraction.padEnd(9, '0')} ${id}`;
}
