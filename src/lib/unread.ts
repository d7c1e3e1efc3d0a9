import type { Cluster } from '../client';
import { NOT_REPORTED } from './format';

/** What is shown where a value of a part of the cluster is not read. */
export const NOT_READ = 'not read';

/** A part of a cluster that has metrics of its own. */
type Part = keyof NonNullable<Cluster['unread']>;

/** Why a part's metrics are not read; undefined where they are, so that what they lack is not reported. */
export function whyUnread(cluster: Cluster, part: Part): string | undefined {
  return cluster.unread?.[part] || undefined;
}

/** What stands in the place of a part's value that is not there: not read, or not reported. */
export function silence(why: string | undefined): string {
  return why === undefined ? NOT_REPORTED : NOT_READ;
}
