from .converter import HandlerTable

TABLE = HandlerTable()
