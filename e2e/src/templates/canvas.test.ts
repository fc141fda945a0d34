import { afterAll, beforeAll, expect, test } from 'vitest';
import { shared } from '../../test/shared-service.ts';
import { TestSandbox } from '../../test/test-sandbox.ts';

const VM_TEST_MS = 400_000;

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await TestSandbox.create(await shared.signUp(), { template: 'canvas' });
}, VM_TEST_MS);
afterAll(() => sandbox?.delete());

const write = (path: string, text: string) =>
  sandbox.account.client.sandboxes.files.write(sandbox.id, path, text);
const read = async (path: string) =>
  Buffer.from(await sandbox.account.client.sandboxes.files.read(sandbox.id, path));

const PROGRAM = `
  ctx.fillStyle = 'white';
  ctx.fillRect(0, 0, width, height);
  ctx.fillStyle = 'black';
  ctx.font = '24px sans-serif';
  const image = await loadImage('tile.png');
  ctx.drawImage(image, 0, 0);
  for (const [index, text] of ['Latin', '漢字', 'かな', '한글', '😀'].entries()) ctx.fillText(text, 20 + index * 50, 40);
  // A character without a glyph would be drawn as the same box as this one, which no font has.
  const ink = (text) => {
    ctx.clearRect(0, 60, width, 60);
    ctx.fillText(text, 10, 100);
    return ctx.getImageData(0, 60, width, 60).data.join();
  };
  const box = ink('\u{10fffd}');
  console.log(['a', '漢', 'か', '한', '😀'].filter((text) => ink(text) === box).join());
  ctx.clearRect(0, 60, width, 60);
`;

test(
  'canvas-render draws scripts and pages in every format with all fonts',
  async () => {
    await write('/root/tile.js', "ctx.fillStyle = 'red'; ctx.fillRect(0, 0, width, height);");
    await write('/root/drawing.js', PROGRAM);
    await write('/root/lib.js', 'const COLOUR = "blue";');
    const script =
      "c.getContext('2d').fillStyle = COLOUR; c.getContext('2d').fillRect(0, 0, 9, 9);";
    await write(
      '/root/page.html',
      `<canvas id="c" width="50" height="40"></canvas><script src="lib.js"></script><script>${script}</script>`,
    );
    await sandbox.run('canvas-render tile.js -o tile.png --width 16 --height 16');
    const size = '--width 300 --height 120';
    expect(await sandbox.run(`canvas-render drawing.js -o drawing.png ${size}`)).toBe('');
    await sandbox.run(`canvas-render drawing.js -o drawing.jpg ${size}`);
    await sandbox.run(`canvas-render drawing.js -o drawing.pdf ${size}`);
    await sandbox.run('canvas-render page.html -o page.svg');
    expect(await sandbox.run('file -b drawing.png drawing.jpg drawing.pdf')).toMatch(
      /^PNG image data, 300 x 120.*\nJPEG image data.*300x120.*\nPDF document.*1 page/,
    );
    expect((await read('/root/page.svg')).toString()).toContain(
      '<rect fill="blue" width="9" height="9"/>',
    );
  },
  VM_TEST_MS,
);

test(
  'canvas-render reports failures by its exit code and writes no file',
  async () => {
    await write('/root/broken.js', "throw new Error('no such colour');");
    const failed = await sandbox.exec('canvas-render broken.js -o broken.png');
    expect(failed).toMatchObject({ exit_code: 1, stdout: '' });
    expect(failed.stderr).toContain('Error: no such colour\n    at /root/broken.js:1:7');
    expect(await sandbox.exec('canvas-render broken.js -o broken.gif')).toMatchObject({
      exit_code: 2,
    });
    expect((await sandbox.exec('ls broken.*')).stdout).toBe('broken.js\n');
  },
  VM_TEST_MS,
);

test(
  'programs of any folder find the canvas module',
  async () => {
    const draw = "createCanvas(4, 3).encodeSync('png').length > 50";
    expect(
      await sandbox.run(
        `cd /tmp && node -p "const { createCanvas } = require('@napi-rs/canvas'); ${draw}"`,
      ),
    ).toBe('true');
    await write(
      '/tmp/draw.mjs',
      `import { createCanvas } from '@napi-rs/canvas'; console.log(${draw});`,
    );
    expect(await sandbox.run('node /tmp/draw.mjs')).toBe('true');
  },
  VM_TEST_MS,
);

test('a session with canvas is refused', async () => {
  const { client } = sandbox.account;
  const session = client.sessions.create({
    agent: { kind: 'deictic' },
    app: { id: 'svc-sandbox' },
    // @ts-expect-error the type of the SDK leaves it out, too
    template: 'canvas',
    llm: { vendor: 'anthropic' },
    user_id: 'ada',
  });
  await expect(session).rejects.toMatchObject({ status: 400, code: 'session_template_unknown' });
});
