// Makes a server listen on a free port of the loopback interface, and write its address.
// Usage: node --import ./listen.mjs SERVER
import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  this.once('listening', () => console.log(`listening on http://127.0.0.1:${this.address().port}`));
  return listen.call(this, 0, '127.0.0.1', ...rest);
};
