import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Size } from '../../../src/canvas/limits.ts';

const RUN_MS = 120_000;
const MAX_OUTPUT = 256 * 1024 * 1024;
const RESULT = /<pre id="result">([^<]*)<\/pre>/;

/** A drawing program and its name. */
export interface Drawing {
  readonly name: string;
  readonly file: string;
}

/**
 * What Chromium's own canvas shows for these programs, as PNG by name. Requires Debian's `chromium`. Rejects if a program
 * fails.
 */
export async function drawWithChromium(
  drawings: readonly Drawing[],
  { width, height }: Size,
): Promise<Map<string, Buffer>> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-canvas-chromium-'));
  try {
    const page = join(directory, 'page.html');
    await writeFile(page, await pageOf(drawings, { width, height }));
    const { stdout } = await promisify(execFile)(
      'chromium',
      [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--allow-file-access-from-files'],
        ...['--virtual-time-budget=60000', `--user-data-dir=${join(directory, 'profile')}`],
        ...['--dump-dom', pathToFileURL(page).href],
      ],
      { timeout: RUN_MS, maxBuffer: MAX_OUTPUT },
    );
    return readResult(stdout);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function pageOf(drawings: readonly Drawing[], { width, height }: Size): Promise<string> {
  const programs = await Promise.all(
    drawings.map(async ({ name, file }) => {
      const base = JSON.stringify(pathToFileURL(file).href);
      const program = await readFile(file, 'utf8');
      return `await draw(${JSON.stringify(name)}, ${base}, async (canvas, ctx, width, height, loadImage) => {\n${program}\n});`;
    }),
  );
  return `<!doctype html><meta charset="utf-8"><pre id="result"></pre><script type="module">
const pictures = {};
async function draw(name, base, program) {
  const canvas = document.createElement('canvas');
  canvas.width = ${width};
  canvas.height = ${height};
  const loadImage = async (source) => {
    const image = new Image();
    image.src = new URL(source, base);
    await image.decode();
    return image;
  };
  await program(canvas, canvas.getContext('2d'), canvas.width, canvas.height, loadImage);
  pictures[name] = canvas.toDataURL();
}
try {
${programs.join('\n')}
} catch (error) {
  pictures.error = String(error);
}
document.querySelector('#result').textContent = JSON.stringify(pictures);
</script>`;
}

function readResult(html: string): Map<string, Buffer> {
  const [, text = '{}'] = RESULT.exec(html) ?? [];
  const { error, ...pictures }: Record<string, string> = JSON.parse(text);
  if (error !== undefined) throw new Error(`a program fails in Chromium: ${error}`);
  const bytesOf = (url: string) => Buffer.from(url.slice(url.indexOf(',') + 1), 'base64');
  return new Map(Object.entries(pictures).map(([name, url]) => [name, bytesOf(url)]));
}
