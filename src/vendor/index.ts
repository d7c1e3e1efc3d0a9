import type { Settings } from '../client';
import type { Vendor } from './schema';

export type { Platform, Vendor, VendorQuestion, VisitorKind } from './schema';
export { useVendor } from './useVendor';

/** The name of a vendor file, as the load generator's setting `vendor` has it. */
export type VendorName = Settings['vendor'];

/** The vendor that is meant where none is known: it is true of any cluster. */
export const NEUTRAL: VendorName = 'neutral';

/**
 * Fetches each vendor file, by its name. The names are those of the API
 * (`Vendors` in sidecar/api): a new one is added in both places, and
 * `npx jest src/vendor` says by name what is wrong with a file.
 */
export const vendors: Record<VendorName, () => Promise<Vendor>> = {
  neutral: async () => (await import('./neutral.json')).default,
  digitalocean: async () => (await import('./digitalocean.json')).default,
};
