// A hostile server: node server.cjs PORT. Its page tries to reach what belongs to the API and to another sandbox. It prints
// its port, and the cookies that it receives. Every path shows the page, with a few exceptions.

const { readFileSync } = require('node:fs');
const { createServer } = require('node:http');
const { join } = require('node:path');

const PAGE = readFileSync(join(__dirname, 'page.html'));
const WORKER = `
  self.addEventListener('connect', ({ ports: [port] }) => port.postMessage('secret'));
  self.addEventListener('message', () => self.postMessage('secret'));
  self.addEventListener('fetch', () => {});
`;
/** Headers by which it tries to rule its origin. */
const HEADERS = {
  'access-control-allow-credentials': 'true',
  'cross-origin-opener-policy': 'unsafe-none',
  'service-worker-allowed': '/',
  'set-cookie': ['planted=by-header; Path=/', 'planted-too=by-header; Domain=localhost; Path=/'],
};

const server = createServer((request, response) => {
  console.log(`cookies: ${request.headers.cookie ?? 'none'}`);
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  const [path] = request.url.split('?');
  if (path.endsWith('/worker.js')) {
    response.setHeader('content-type', 'text/javascript');
    response.end(WORKER);
  } else if (path.endsWith('/clear')) {
    response.setHeader('content-type', 'text/html');
    response.setHeader('clear-site-data', '"cookies", "storage"');
    response.end('<p>cleared</p>');
  } else if (path.endsWith('/hints')) {
    response.setHeader('content-type', 'text/html');
    response.setHeader('accept-ch', 'Sec-CH-UA-Model');
    response.end('<p>asked for hints</p>');
  } else {
    response.setHeader('content-type', 'text/html');
    response.end(PAGE);
  }
});
server.listen(Number(process.argv[2]), '127.0.0.1', () => console.log(server.address().port));
