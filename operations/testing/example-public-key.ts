/** An Ed25519 public key that no other number has, as a line of `authorized_keys`. */
export function examplePublicKey(number: number): string {
  const content = Buffer.alloc(32);
  content.writeUInt32BE(number);
  const body = [Buffer.from('ssh-ed25519'), content].flatMap((one) => [
    Buffer.from([0, 0, 0, one.length]),
    one,
  ]);
  return `ssh-ed25519 ${Buffer.concat(body).toString('base64')} example`;
}
