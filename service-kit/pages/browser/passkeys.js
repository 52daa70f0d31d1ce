// Passkeys: a button asks the browser, the answer goes into a field of its form, and the form is sent.
// `data-passkey` is the path that gives the options of a sign-in, or "create" with `data-options` to make a passkey.
const isSupported =
  window.PublicKeyCredential?.parseRequestOptionsFromJSON !== undefined &&
  navigator.credentials !== undefined;

async function ask(box) {
  if (box.dataset.passkey === 'create') {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(box.dataset.options));
    return navigator.credentials.create({ publicKey });
  }
  const answer = await fetch(box.dataset.passkey, { method: 'POST' });
  if (!answer.ok) throw new Error('Too many attempts. Wait ten minutes, then try again.');
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await answer.json());
  return navigator.credentials.get({ publicKey });
}

for (const box of document.querySelectorAll('[data-passkey]')) {
  const button = box.querySelector('button');
  const fault = box.querySelector('[role=alert]');
  box.hidden = !isSupported;
  button.addEventListener('click', async () => {
    fault.hidden = true;
    button.disabled = true;
    try {
      const credential = await ask(box);
      box.querySelector('input').value = JSON.stringify(credential.toJSON());
      // Without validation: the fields beside it are for those who have no passkey.
      box.closest('form').submit();
    } catch (error) {
      const isDeclined = error.name === 'NotAllowedError';
      const isKnown = error.name === 'InvalidStateError';
      fault.textContent = isDeclined
        ? 'No passkey was used. Try again.'
        : isKnown
          ? 'This device has a passkey of yours already.'
          : error.message;
      fault.hidden = false;
      button.disabled = false;
    }
  });
}
