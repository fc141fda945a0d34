import type { Route } from '../../services.ts';
import { getObject } from './get.ts';
import { putObject } from './put.ts';

/** The presigned URLs of a store in the data directory. They carry their own authorization. */
export const objectRoutes: readonly Route[] = [getObject, putObject];
