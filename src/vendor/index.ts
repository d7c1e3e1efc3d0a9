import type { Settings } from '../client';
import type { Vendor } from './schema';

export type { Platform, Vendor, VendorQuestion } from './schema';
export { useVendor } from './useVendor';

/** The name of a vendor file, a value of the load generator's setting `vendor`. */
export type VendorName = Settings['vendor'];

/** The vendor in use where none is known. Its texts hold for any cluster. */
export const NEUTRAL: VendorName = 'neutral';

/**
 * Loads each vendor file, by its name. The names are those of the API (`Vendors` in sidecar/api): a new one is added in
 * both places, and `npx jest src/vendor` names each mistake in a file.
 */
export const vendors: Record<VendorName, () => Promise<Vendor>> = {
  neutral: async () => (await import('./neutral.json')).default,
  digitalocean: async () => (await import('./digitalocean.json')).default,
};
