import { inTurns, timed } from '../measure/in-turns.ts';
import { type Row, ratioResult } from '../measure/row.ts';
import { OpenSsh } from '../ssh/open-ssh.ts';

const AT_MOST = 1.15;
const WARM_UPS = 10;

/** The smallest command through the API, compared with OpenSSH over an open connection. */
export const execWarm: Row = {
  name: 'exec-warm',
  pool: 2,
  async run({ service, runs, scratch, progress }) {
    const { id, host, port } = await service.createSandbox();
    const ssh = await OpenSsh.open({ host, port, dataDir: service.dataDir, scratch });
    try {
      await service.settled();
      const samples = await inTurns({
        runs,
        warmUps: WARM_UPS,
        ours: () => timed(() => service.client.sandboxes.exec(id, 'true')),
        comparison: () => timed(() => ssh.exec('true')),
        onTurn: (done) => progress(`${done}/${runs}`),
      });
      return [
        ratioResult({
          name: this.name,
          what: 'exec `true`, warm',
          against: 'OpenSSH client, multiplexed, same VM',
          unit: 'ms',
          ...samples,
          atMost: AT_MOST,
        }),
      ];
    } finally {
      await ssh.close();
      await service.client.sandboxes.delete(id);
    }
  },
};
