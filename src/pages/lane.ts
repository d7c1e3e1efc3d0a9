/** The lane that the pages show. */
export const LANE = 'main';
