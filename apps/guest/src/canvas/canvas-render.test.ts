import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createCanvas, loadImage } from '@napi-rs/canvas';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url));
const TEST_MS = 60_000;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-canvas-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `canvas-render` in the test's directory. */
function run(...args: readonly string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { cwd: directory }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code);
      resolve({ code, stdout, stderr });
    });
  });
}

async function render(name: string, text: string, ...args: readonly string[]): Promise<Run> {
  await writeFile(join(directory, name), text);
  return run(name, ...args);
}

/** The colours of these points of a picture, as `r,g,b,a`. */
async function colours(file: string, ...points: readonly [number, number][]) {
  const image = await loadImage(await readFile(join(directory, file)));
  const canvas = createCanvas(image.width, image.height);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  return points.map(([x, y]) => context.getImageData(x, y, 1, 1).data.join());
}

async function sizeOf(file: string): Promise<string> {
  const { width, height } = await loadImage(await readFile(join(directory, file)));
  return `${width} × ${height}`;
}

const RED = '255,0,0,255';
const SQUARE = "ctx.fillStyle = 'red'; ctx.fillRect(0, 0, 20, 20);";
const SMALL = ['--width', '40', '--height', '30'];

describe('a script', { timeout: TEST_MS }, () => {
  test('is drawn in every format', async () => {
    for (const file of ['a.png', 'a.jpg', 'a.jpeg', 'a.svg', 'a.pdf']) {
      expect(await render('a.js', SQUARE, '-o', file, ...SMALL)).toEqual({
        code: 0,
        stdout: '',
        stderr: '',
      });
    }
    expect(await colours('a.png', [10, 10], [30, 10])).toEqual([RED, '0,0,0,0']);
    expect(await colours('a.jpg', [36, 26])).toEqual(['255,255,255,255']);
    expect(await sizeOf('a.jpeg')).toBe('40 × 30');
    const svg = await readFile(join(directory, 'a.svg'), 'utf8');
    expect(svg).toContain('<rect fill="red" width="20" height="20"/>');
    const pdf = await readFile(join(directory, 'a.pdf'), 'latin1');
    expect(pdf).toMatch(/^%PDF-/);
    expect(pdf).toContain('/MediaBox [0 0 40 30]');
  });

  test('finds canvas, ctx, width, height and loadImage, and may await', async () => {
    await render('tile.js', SQUARE, '-o', 'tile.png', '--width', '20', '--height', '20');
    const program = `
      const tile = await loadImage('tile.png');
      const inline = await loadImage('data:image/svg+xml,' + encodeURIComponent(
        '<svg xmlns="http://www.w3.org/2000/svg" width="5" height="5"><rect fill="red" width="5" height="5"/></svg>'));
      await new Promise((resolve) => setTimeout(resolve, 1));
      console.log(width, height, canvas.width, canvas === ctx.canvas, tile.width);
      ctx.drawImage(tile, 30, 30);
      ctx.drawImage(inline, 0, 0);`;
    const { stdout, stderr } = await render('a.js', program, '-o', 'a.png', '--width', '50');
    expect({ stdout, stderr }).toEqual({ stdout: '50 600 50 true 20\n', stderr: '' });
    expect(await colours('a.png', [40, 40], [2, 2], [20, 20])).toEqual([RED, RED, '0,0,0,0']);
  });

  test('loads images over HTTP', async () => {
    await render('tile.js', SQUARE, '-o', 'tile.png', '--width', '20', '--height', '20');
    const tile = await readFile(join(directory, 'tile.png'));
    const server = createServer((_request, response) => response.end(tile));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const program = `ctx.drawImage(await loadImage('http://127.0.0.1:${port}/a'), 0, 0);`;
    try {
      expect((await render('a.js', program, '-o', 'a.png')).code).toBe(0);
    } finally {
      server.close();
    }
    expect(await colours('a.png', [10, 10])).toEqual([RED]);
  });

  test('draws a bounded number of frames', async () => {
    const program = `let n = 0;
      const frame = () => { n += 1; console.log(n); requestAnimationFrame(frame); };
      requestAnimationFrame(frame);`;
    const { code, stdout } = await render('a.js', program, '-o', 'a.png', '--frames', '3');
    expect({ code, stdout }).toEqual({ code: 0, stdout: '1\n2\n3\n' });
  });

  test('replaces the output only when it is complete', async () => {
    await writeFile(join(directory, 'a.png'), 'old');
    expect((await render('a.js', 'throw 1', '-o', 'a.png')).code).toBe(1);
    expect(await readFile(join(directory, 'a.png'), 'utf8')).toBe('old');
    expect((await render('a.js', SQUARE, '-o', 'a.png')).code).toBe(0);
    expect(await colours('a.png', [10, 10])).toEqual([RED]);
    expect((await readdir(directory)).sort()).toEqual(['a.js', 'a.png']);
  });
});

describe('SVG', { timeout: TEST_MS }, () => {
  test('contains an image where it cannot express the drawing', async () => {
    const shadow = `ctx.shadowColor = 'black'; ctx.shadowBlur = 10; ctx.fillRect(10, 10, 20, 10);`;
    await render('a.js', shadow, '-o', 'a.svg', ...SMALL);
    const svg = await readFile(join(directory, 'a.svg'), 'utf8');
    expect(svg).toContain('<image width="40" height="30" xlink:href="data:image/png;base64,');
  });

  test('has the circles of a radial gradient in order', async () => {
    const gradient = `const g = ctx.createRadialGradient(20, 15, 0, 20, 15, 10);
      g.addColorStop(0, 'red'); g.addColorStop(1, 'blue'); ctx.fillStyle = g; ctx.fillRect(0, 0, 40, 30);`;
    await render('a.js', gradient, '-o', 'a.svg', ...SMALL);
    expect(await readFile(join(directory, 'a.svg'), 'utf8')).toMatch(
      /<radialGradient [^>]* r="10"/,
    );
  });
});

describe('a page', { timeout: TEST_MS }, () => {
  test('runs its scripts in order, then timers and frames by its own clock', async () => {
    await writeFile(
      join(directory, 'lib.js'),
      "const COLOUR = 'red'; function area() { return 20; }",
    );
    await writeFile(join(directory, 'data.txt'), 'from a file');
    const page = `<!doctype html><canvas id="c" width="60" height="40"></canvas>
      <script src="lib.js"></script><script>
        const context = document.getElementById('c').getContext('2d');
        const seen = [];
        window.onload = () => seen.push('load');
        setTimeout(() => { seen.push('timer'); context.fillStyle = COLOUR; context.fillRect(0, 0, area(), area()); }, 900);
        fetch('data.txt').then((answer) => answer.text()).then((text) => seen.push(text));
        const image = new Image();
        image.src = 'data:image/svg+xml,' + encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" width="8" height="4"/>');
        image.onload = () => seen.push('image ' + image.width + ' ' + image.naturalHeight);
        let frames = 0;
        const frame = (time) => {
          frames += 1;
          if (frames === 60) console.log(seen.sort().join(), Math.round(time), performance.now() === time);
          requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      </script>`;
    const { code, stdout, stderr } = await render('a.html', page, '-o', 'a.png');
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: 'from a file,image 8 4,load,timer 1000 true\n',
      stderr: '',
    });
    expect(await colours('a.png', [10, 10], [30, 30])).toEqual([RED, '0,0,0,0']);
  });

  test('draws canvases and images on its canvas', async () => {
    await render('tile.js', SQUARE, '-o', 'tile.png', '--width', '20', '--height', '20');
    const page = `<canvas width="100" height="30"></canvas><img src="tile.png"><script>
      const canvas = document.querySelector('canvas');
      const context = canvas.getContext('2d');
      const layer = document.createElement('canvas');
      layer.width = layer.height = 20;
      layer.getContext('2d').fillStyle = 'red';
      layer.getContext('2d').fillRect(0, 0, 20, 20);
      const offscreen = new OffscreenCanvas(20, 20);
      offscreen.getContext('2d').drawImage(layer, 0, 0);
      console.log(context.canvas === canvas, canvas.getBoundingClientRect().width, layer.toDataURL().slice(0, 15));
      onload = async () => {
        context.drawImage(layer, 0, 0);
        context.drawImage(document.querySelector('img'), 25, 0);
        context.drawImage(offscreen, 50, 0);
        context.drawImage(await createImageBitmap(layer), 75, 0);
      };
    </script>`;
    const { stdout, stderr } = await render('a.html', page, '-o', 'a.png');
    expect({ stdout, stderr }).toEqual({ stdout: 'true 100 data:image/png;\n', stderr: '' });
    const points: [number, number][] = [
      [10, 10],
      [35, 10],
      [60, 10],
      [85, 10],
      [22, 10],
    ];
    expect(await colours('a.png', ...points)).toEqual([RED, RED, RED, RED, '0,0,0,0']);
  });

  test('is drawn at the size asked for', async () => {
    const page = `<canvas width="60" height="40"></canvas><script>
      console.log(innerWidth, innerHeight);
      const context = document.querySelector('canvas').getContext('2d');
      context.fillStyle = 'red'; context.fillRect(0, 0, 60, 20);</script>`;
    expect((await render('a.html', page, '-o', 'a.png', '--width', '120')).stdout).toBe(
      '120 600\n',
    );
    expect(await sizeOf('a.png')).toBe('120 × 80');
    expect(await colours('a.png', [110, 30], [110, 50])).toEqual([RED, '0,0,0,0']);
  });
});

test.each([
  [
    'a script that throws',
    'a.js',
    "ctx.fill();\nthrow new Error('no way')",
    /Error: no way\n.*a\.js:2:7/,
  ],
  [
    'a script that rejects late',
    'a.js',
    "Promise.reject(new Error('no way')); await new Promise(() => setTimeout(() => {}, 9e4))",
    /no way/,
  ],
  ['a script with a wrong syntax', 'a.js', 'ctx.fill(', /a\.js.*SyntaxError/s],
  ['a script that ends its process', 'a.js', 'process.exit(0)', /ended its process/],
  ['a script that never ends', 'a.js', 'for (;;) {}', /was not drawn within 2 s/],
  ['a canvas that is too large', 'a.js', 'canvas.width = 20000', /too large/],
  ['an image that does not exist', 'a.js', "await loadImage('gone.png')", /gone\.png/],
  [
    'a page whose script throws',
    'a.html',
    '<canvas></canvas><script>nope()</script>',
    /nope is not defined\n.*a\.html:1/,
  ],
  [
    'a page whose timer throws',
    'a.html',
    "<canvas></canvas><script>setTimeout(() => { throw new Error('late') }, 5)</script>",
    /late/,
  ],
  [
    'a page that rejects',
    'a.html',
    "<canvas></canvas><script>Promise.reject(new Error('rejected'))</script>",
    /rejected/,
  ],
  ['a page without a canvas', 'a.html', '<p>text</p>', /no canvas element/],
  [
    'a page without one of its scripts',
    'a.html',
    '<canvas></canvas><script src="gone.js"></script>',
    /gone\.js cannot be loaded/,
  ],
  [
    'a page with a canvas that is too large',
    'a.html',
    '<canvas width="9000"></canvas>',
    /too large/,
  ],
])(
  '%s fails with its message and without a file',
  { timeout: TEST_MS },
  async (_what, name, text, message) => {
    const limit = message.source.includes('within') ? ['--timeout', '2'] : [];
    const { code, stderr } = await render(name, text, '-o', 'out.png', ...limit);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(message) });
    expect(await readdir(directory)).toEqual([name]);
  },
);

test.each([
  [['-o', 'out.png'], 'name the program'],
  [['a.js'], 'name the output file'],
  [['a.js', '-o', 'out.gif'], 'extension must be'],
  [['a.js', 'b.js', '-o', 'out.png'], 'one program at a time'],
  [['gone.js', '-o', 'out.png'], 'there is no such file'],
  [['a.txt', '-o', 'out.png'], 'an .html or a .js file'],
  [['a.js', '-o', 'gone/out.png'], 'there is no directory'],
  [['a.js', '-o', 'out.png', '--width', '0'], '--width must be'],
  [['a.js', '-o', 'out.png', '--height', '1.5'], '--height must be'],
  [['a.js', '-o', 'out.png', '--width', '8192', '--height', '8192'], 'too large'],
  [['a.js', '-o', 'out.png', '--colour'], "Unknown option '--colour'"],
])('%s is wrong usage', { timeout: TEST_MS }, async (args, message) => {
  await writeFile(join(directory, 'a.js'), SQUARE);
  const { code, stderr } = await run(...args);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
  expect(await readdir(directory)).toEqual(['a.js']);
});

test('--help shows the usage', { timeout: TEST_MS }, async () => {
  const { code, stdout } = await run('--help');
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining('usage: canvas-render'),
  });
});
