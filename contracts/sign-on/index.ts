/**
 * Single sign-on between the two consoles: how an operator who is signed in to one program is signed in to the other.
 *
 * The receiver begins: it gives the browser a secret and sends it to the issuer, which signs an assertion about its
 * operator. The browser posts the assertion to the receiver. `format.md` describes requests, fields and rules.
 */
export {
  type Assertion,
  type AssertionFault,
  assertionLengthMax,
  assertionSeconds,
  clockSkewSeconds,
  signAssertion,
  verifyAssertion,
} from './assertion.ts';
export { keyIdOf, keyText, parseKeyText } from './key-text.ts';
export { answerPath, askPath, beginPath, beginUrl, isStateText, isTargetPath, stateOf } from './paths.ts';
export { type Place, type PlaceRange, placePath } from './places.ts';
