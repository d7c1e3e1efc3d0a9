import type { Cluster } from '../client';
import { NOT_REPORTED } from './format';

/** The text for a part of the cluster whose metrics are not read. */
export const NOT_READ = 'not read';

/** A part of a cluster that has metrics of its own. */
type Part = keyof NonNullable<Cluster['unread']>;

/** Explains why a part's metrics are not read; undefined where they are, so that missing values are not reported. */
export function whyUnread(cluster: Cluster, part: Part): string | undefined {
  return cluster.unread?.[part] || undefined;
}

/** Returns the text in place of a missing value: not read, or not reported. */
export function missingText(why: string | undefined): string {
  return why === undefined ? NOT_REPORTED : NOT_READ;
}
