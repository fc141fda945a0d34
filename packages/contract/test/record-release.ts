/** `npm run record-release`: records the messages of this version, which the next one must understand. */

import { writeFile } from 'node:fs/promises';
import { internalSchemas } from './internal-schemas.ts';

const file = new URL('previous-release.json', import.meta.url);
await writeFile(file, `${JSON.stringify(internalSchemas(), undefined, 1)}\n`);
