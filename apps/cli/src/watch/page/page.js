/** The page of `svc session watch`. It has no secret but the token with which it can come back to the command. */

import { Display } from './display.js';
import { listen } from './input.js';

const TOKEN = 'token';
const NOTICE_MS = 5_000;
const STATUS = { connected: 'Connected', reconnecting: 'Reconnecting …' };
const GONE = 'The command has ended, or this link was used already.';

const find = (id) => document.querySelector(`#${id}`);
const canvas = find('display');
const display = new Display(canvas);
let noticeTimer;

function showStatus(status, text) {
  const element = find('status');
  element.dataset.status = status;
  element.textContent = text;
  canvas.classList.toggle('stale', status !== 'connected');
}

function showNotice(text) {
  const element = find('notice');
  element.textContent = text;
  element.hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => {
    element.hidden = true;
  }, NOTICE_MS);
}

/** The token of the link, or the one that this page was given when it was loaded before. */
function takeToken() {
  const token = location.hash.slice(1) || sessionStorage.getItem(TOKEN);
  sessionStorage.removeItem(TOKEN);
  // A link that was used is of no use in the address bar.
  history.replaceState(null, '', '/');
  return token;
}

function connect(token) {
  const query = new URLSearchParams({ token });
  const socket = new WebSocket(`ws://${location.host}/view?${query}`);
  socket.binaryType = 'arraybuffer';
  let isOver = false;
  const send = (message) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  };
  const handle = {
    hello({ session, token: next, control }) {
      sessionStorage.setItem(TOKEN, next);
      document.title = `Desktop of ${session}`;
      find('session').textContent = session;
      find('mode').textContent = control ? 'Mouse and keyboard' : 'View only';
      if (!control) return;
      canvas.tabIndex = 0;
      canvas.classList.add('control');
      canvas.focus();
      listen(canvas, (name, input) => send({ type: 'input', name, arguments: input }));
    },
    status: ({ status }) => showStatus(status, STATUS[status]),
    ended({ reason }) {
      isOver = true;
      sessionStorage.removeItem(TOKEN);
      showStatus('ended', reason);
    },
    notice: ({ text }) => showNotice(text),
  };
  let drawing = Promise.resolve();
  socket.addEventListener('message', ({ data }) => {
    if (typeof data === 'string') {
      const message = JSON.parse(data);
      handle[message.type](message);
      return;
    }
    drawing = drawing.then(async () => {
      const { number, failed } = await display.draw(data);
      // Confirmed nevertheless, so that the view goes on.
      if (failed !== undefined) showNotice(`A part cannot be shown: ${failed.message}`);
      send({ type: 'drawn', number });
    });
  });
  socket.addEventListener('close', () => {
    if (!isOver) showStatus('ended', GONE);
  });
}

setInterval(() => {
  find('fps').textContent = `${display.fps.toFixed(1)} pictures a second`;
}, 1_000);
const token = takeToken();
if (token === null) showStatus('ended', 'Open the link that the command has printed.');
else connect(token);
