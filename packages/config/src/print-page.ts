/** Prints docs/configuration.md. */

import { configurationPage } from './document.ts';

process.stdout.write(configurationPage());
