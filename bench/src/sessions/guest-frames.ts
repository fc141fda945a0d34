import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { BenchService } from '../service/bench-service.ts';

const SOURCE = fileURLToPath(new URL('./guest/frame-source.ts', import.meta.url));
const PATH = '/root/frame-source.cjs';

/** Number of frames in one measurement. */
export const ROUND_FRAMES = 5_000;

/** Replaces a sandbox's agent runtime with the frame source. Resolves when the source listens. */
export async function startFrameSource(
  { client }: BenchService,
  vmId: string,
  mode: 'link' | 'websocket',
): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: [SOURCE],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    target: 'node24',
  });
  const [program] = outputFiles;
  if (program === undefined) throw new Error('nothing was bundled');
  await client.sandboxes.files.write(vmId, PATH, program.contents);
  // The guest restarts a killed runtime immediately. Stopping the new process keeps it off the port and the CPU.
  const { output, exit_code } = await client.sandboxes.exec(
    vmId,
    `pkill -KILL -f 'svc/[a]gent-runtime'
     until pkill -STOP -f 'svc/[a]gent-runtime'; do sleep 0.05; done
     setsid node ${PATH} ${mode} ${ROUND_FRAMES} </dev/null >/root/frame-source.log 2>&1 &
     for try in $(seq 300); do ss -tln | grep -q ':7100 ' && exit 0; sleep 0.1; done
     cat /root/frame-source.log; exit 1`,
  );
  if (exit_code !== 0) throw new Error(`the frame source does not listen: ${output}`);
}
