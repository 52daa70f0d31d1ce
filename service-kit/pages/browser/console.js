// The console of a server: connects with the ticket in the page, and shows a screen (VNC) or a terminal.
const box = document.querySelector('[data-console]');
const status = box.querySelector('[role=status]');
const screen = box.querySelector('.console-screen');
const keys = box.querySelector('[data-console-keys]');
const url = new URL(box.dataset.console, location.href.replace(/^http/, 'ws'));
const closed = 'The console is closed. Connect again to go on.';
const charactersMax = 50_000;

function say(text, isOpen) {
  status.textContent = text;
  box.classList.toggle('open', isOpen);
  if (isOpen) screen.focus({ preventScroll: true });
}

async function showScreen() {
  const { default: Rfb } = await import('./novnc/core/rfb.js');
  const rfb = new Rfb(screen, url.href);
  rfb.scaleViewport = true;
  rfb.background = 'transparent';
  rfb.addEventListener('connect', () => {
    say('Connected. Click the screen to type.', true);
    keys.hidden = false;
    rfb.focus({ preventScroll: true });
  });
  rfb.addEventListener('disconnect', () => {
    say(closed, false);
    keys.hidden = true;
  });
  keys.addEventListener('click', () => {
    rfb.sendCtrlAltDel();
    rfb.focus({ preventScroll: true });
  });
}

const [esc, backspace, erase] = ['\u001b', '\b', '\u007f'];
const special = {
  ...{ Enter: '\r', Backspace: erase, Tab: '\t', Escape: esc },
  ...{
    ArrowUp: `${esc}[A`,
    ArrowDown: `${esc}[B`,
    ArrowRight: `${esc}[C`,
    ArrowLeft: `${esc}[D`,
  },
};
// Of cursor and color: left out of the text.
const sequences = new RegExp(`${esc}(?:\\[[0-9;?]*[@-~]|[@-Z\\\\-_])`, 'g');

// What a key sends; null for one that is the browser's own: Shift+Tab leaves the terminal.
function textOf({ key, shiftKey, ctrlKey, altKey, metaKey }) {
  if (altKey || metaKey || (key === 'Tab' && shiftKey)) return null;
  if (ctrlKey) return /^[a-uw-z]$/.test(key) ? String.fromCharCode(key.charCodeAt(0) - 96) : null;
  return special[key] ?? ([...key].length === 1 ? key : null);
}

// The text with more of it, as a terminal without colors shows it.
function append(shown, more) {
  let text = shown;
  for (const character of more.replace(sequences, '').replace(/\r\n?/g, '\n'))
    text = character === backspace || character === erase ? text.replace(/[^\n]$/u, '') : text + character;
  return text.slice(-charactersMax);
}

function showTerminal() {
  const terminal = document.createElement('pre');
  screen.append(terminal);
  const socket = new WebSocket(url);
  socket.binaryType = 'arraybuffer';
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let shown = '';
  socket.addEventListener('open', () => say('Connected. Click the terminal to type.', true));
  socket.addEventListener('close', () => say(closed, false));
  socket.addEventListener('message', ({ data }) => {
    shown = append(shown, decoder.decode(data, { stream: true }));
    terminal.textContent = shown;
    screen.scrollTop = screen.scrollHeight;
  });
  const send = (text) => socket.readyState === WebSocket.OPEN && socket.send(encoder.encode(text));
  screen.addEventListener('keydown', (event) => {
    const text = textOf(event);
    if (text === null) return;
    event.preventDefault();
    event.stopPropagation();
    send(text);
  });
  screen.addEventListener('paste', (event) =>
    send(event.clipboardData.getData('text').replaceAll('\n', '\r')),
  );
}

if (box.dataset.kind === 'vnc') void showScreen();
else showTerminal();
