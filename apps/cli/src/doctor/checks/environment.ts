import { unknownVariables } from '@svc/config';
import { OWN_VARIABLES } from '../../own-variables.ts';
import { type Check, ok, warn } from '../finding.ts';

/** Settings that nobody reads. */
export const environmentCheck: Check = {
  name: 'settings',
  run: async () => {
    const unknown = unknownVariables(process.env, OWN_VARIABLES);
    if (unknown.length === 0) return ok('settings', 'valid');
    return warn('settings', `unknown: ${unknown.join(', ')}`, 'compare with docs/configuration.md');
  },
};
