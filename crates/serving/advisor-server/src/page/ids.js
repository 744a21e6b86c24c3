// Ids of conversations and turns. The page makes them, so that the server answers a repeated request once.

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Returns a new id, a UUID of version 7. Ids are in the order of their creation, as those of the server. */
export const newId = () => {
  const time = Date.now().toString(16).padStart(12, "0");
  // Not `crypto.randomUUID`, which exists in secure contexts only.
  const random = hex(crypto.getRandomValues(new Uint8Array(9)));
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6)}`;
};
