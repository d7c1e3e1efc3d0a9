import { useLiveValue, usePolled, type Live, type Polled } from '../client';
import { NEUTRAL, vendors, type Vendor, type VendorName } from '.';

/** The pause after which a file that could not be fetched is requested again, in milliseconds. */
const AGAIN_AFTER = 5000;

/**
 * Returns the vendor that the load generator's settings name, once its file is loaded. Before, and while it cannot be
 * fetched, it returns none, with the problem. The file is requested until it arrives. Snapshots of the lane contain the
 * name; a new snapshot renders only where the name changes.
 */
export function useVendor(lane: string): Polled<Vendor> {
  const name = useLiveValue(lane, vendorName);
  return usePolled(name && vendors[name], ({ problem }) => problem !== undefined && AGAIN_AFTER, `vendor ${name}`);
}

/**
 * Returns the vendor's name; undefined until it is known. A load generator that was never reached, or that names a
 * vendor without a file in this front end, uses the neutral one.
 */
function vendorName({ state }: Live): VendorName | undefined {
  if (state.status === 'loading') {
    return undefined;
  }
  const name = (state.status === 'live' ? state.snapshot : state.last)?.settings.vendor;
  return name !== undefined && Object.hasOwn(vendors, name) ? name : NEUTRAL;
}
