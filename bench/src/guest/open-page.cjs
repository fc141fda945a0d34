// Runs in a sandbox of the template `browser`: opens a page, loads a site of this process, takes a screenshot, and prints
// how many milliseconds that took. Given the arguments of a browser, it starts that one, and the time includes its start;
// otherwise it uses the browser that is running.
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { createServer } = require('node:http');
const { createInterface } = require('node:readline');

const RUNNING = 'http://127.0.0.1:9222/json/version';
const PAGE = `<!doctype html><title>Bench</title><style>body { font: 18px sans-serif }</style>
  <h1>A page</h1><form><label>Name <input name="name"></label><button>Send</button></form>
  <ul>${'<li>Some text, which is laid out and drawn.</li>'.repeat(40)}</ul>`;

async function main([program, ...programArguments]) {
  const site = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(PAGE);
  });
  await once(site.listen(0, '127.0.0.1'), 'listening');
  // The first request of a Node process takes a second on an emulated processor, whoever answers it.
  const address = `http://127.0.0.1:${site.address().port}`;
  await (await fetch(address)).text();
  const start = performance.now();
  const url =
    program === undefined
      ? (await (await fetch(RUNNING)).json()).webSocketDebuggerUrl
      : await startBrowser(program, programArguments);
  const browser = await connect(url);
  const { targetId } = await browser.send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await browser.send('Target.attachToTarget', { targetId, flatten: true });
  await browser.send('Page.enable', {}, sessionId);
  const loaded = browser.event('Page.loadEventFired');
  await browser.send('Page.navigate', { url: address }, sessionId);
  await loaded;
  const { data } = await browser.send('Page.captureScreenshot', { format: 'png' }, sessionId);
  const took = performance.now() - start;
  if (Buffer.from(data, 'base64').length < 1000) throw new Error('the screenshot is empty');
  process.stdout.write(`${took}\n`, () => process.exit(0));
}

async function startBrowser(program, programArguments) {
  const browser = spawn(program, programArguments, { stdio: ['ignore', 'ignore', 'pipe'] });
  process.on('exit', () => browser.kill('SIGKILL'));
  for await (const line of createInterface(browser.stderr)) {
    const [, url] = /^DevTools listening on (ws:\S+)/.exec(line) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error('the browser ended');
}

async function connect(url) {
  const socket = new WebSocket(url);
  await once(socket, 'open');
  const answers = new Map();
  const events = new Map();
  socket.onmessage = ({ data }) => {
    const { id, method, result, error } = JSON.parse(data);
    if (id === undefined) events.get(method)?.();
    else if (error === undefined) answers.get(id).resolve(result);
    else answers.get(id).reject(new Error(error.message));
  };
  return {
    send(method, params, sessionId) {
      const id = answers.size + 1;
      const answer = Promise.withResolvers();
      answers.set(id, answer);
      socket.send(JSON.stringify({ id, method, params, sessionId }));
      return answer.promise;
    },
    event: (method) => new Promise((resolve) => events.set(method, resolve)),
  };
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
