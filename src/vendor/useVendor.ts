import { useLiveValue, usePolled, type Live, type Polled } from '../client';
import { NEUTRAL, vendors, type Vendor, type VendorName } from '.';

/** How soon a file that could not be fetched is asked for again, in milliseconds. */
const AGAIN_AFTER = 5000;

/**
 * Gives the vendor that the load generator's settings name, once its file is there; before, or
 * where it cannot be fetched, none, and then the problem. It is asked for until it comes.
 * Snapshots of the lane contain the name. A new snapshot renders nothing unless the name changes.
 */
export function useVendor(lane: string): Polled<Vendor> {
  const name = useLiveValue(lane, vendorName);
  return usePolled(name && vendors[name], ({ problem }) => problem !== undefined && AGAIN_AFTER, `vendor ${name}`);
}

/**
 * Undefined until it is known whose it is. A load generator that is lost before its first word
 * has none, nor has one of another version that this front end has no file for: then it is neutral.
 */
function vendorName({ state }: Live): VendorName | undefined {
  if (state.status === 'loading') {
    return undefined;
  }
  const name = (state.status === 'live' ? state.snapshot : state.last)?.settings.vendor;
  return name !== undefined && Object.hasOwn(vendors, name) ? name : NEUTRAL;
}
