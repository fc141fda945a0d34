import manifest from '../package.json' with { type: 'json' };

/** The version of this checkout. */
export const VERSION: string = manifest.version;
