import { homedir } from 'node:os';
import { join } from 'node:path';

const USER_CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'svc');

/** The images of this user, for services that run with another home directory: building one takes minutes. */
export const BUILT_IMAGES: string = process.env.SVC_IMAGE_DIR || join(USER_CACHE, 'images');

/** Programs of others that tests run, for all checkouts of this user. */
export const CACHED_PROGRAMS: string = join(USER_CACHE, 'programs');
