import { type Check, fail, ok } from '../finding.ts';

const NEEDED = 24;

/** The Node that runs the service. */
export const nodeCheck: Check = {
  name: 'Node',
  run: async () => {
    const major = Number(process.versions.node.split('.')[0]);
    if (major >= NEEDED) return ok('Node', process.versions.node);
    return fail(
      'Node',
      `${process.versions.node}; ${NEEDED} or newer is needed`,
      'sh scripts/bootstrap.sh installs the pinned one',
    );
  },
};
