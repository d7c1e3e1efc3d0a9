import type { Vendor } from './schema';
import file from './vendor.json';

export { PLATFORM_QUESTIONS, VENDOR_QUESTIONS } from './questions';
export type { Platform, Vendor, VisitorKind } from './schema';

/**
 * The one vendor of this installation. Another one takes vendor.json's place;
 * `npx jest src/vendor` says by name what is wrong with it.
 */
export const vendor: Vendor = file;
